"""An event in two lines for people, in English or Chinese. Names and numbers, no sentence from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from service.moments import moment
from service.store.outgoing.webhook_terms import Told
from service.store.outgoing.webhooks import Event

TITLES: Mapping[str, Mapping[Told, str]] = {
    "en": {
        Told.DECISION: "Tiergate: decision",
        Told.WARN: "Tiergate: warning",
        Told.HARM: "Tiergate: harm",
        Told.JOB: "Tiergate: shadow job over",
    },
    "zh": {
        Told.DECISION: "Tiergate:决定",
        Told.WARN: "Tiergate:警告",
        Told.HARM: "Tiergate:损害",
        Told.JOB: "Tiergate:影子任务结束",
    },
}
"""Each begins with `Tiergate`, the keyword that robots of chat tools can be made to ask for."""
BY_A_PERSON = "reject, by a person"
"""A rejection that is a row of the log; one without a row is what the evidence says."""
ACTIONS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "accept": "the evidence accepts",
        "reject": "the evidence rejects",
        "warn": "failures rise, not yet beyond the margin",
        BY_A_PERSON: "kept out of service",
        "approve": "approved",
        "revoke": "approval revoked",
        "promote": "promoted",
        "roll_back": "clients were rolled back to this tier",
        "roll_back_refused": "harm, and nowhere to roll back to",
        "harm": "harm shown while it serves",
        "alarm": "alarm while it serves",
        "slo_lost": "SLO lost",
        "slo_lost_ended": "SLO kept again",
        "frozen": "ramp stopped",
        "skip": "skipped, the tiers above do without it",
        "skip_undone": "skipped no more",
        "restore_alpha": "its attempts are counted anew",
        "policy": "policy changed",
        "token_made": "token made",
        "token_rotated": "token rotated",
        "token_revoked": "token revoked",
        "done": "done",
        "cancelled": "cancelled",
        "aborted": "aborted",
        "failed": "failed",
        "test": "test message",
    },
    "zh": {
        "accept": "证据表明可以接受",
        "reject": "证据表明应当拒绝",
        "warn": "失败率上升,尚未超出容限",
        BY_A_PERSON: "已被否决,不得投入服务",
        "approve": "已批准",
        "revoke": "批准已撤销",
        "promote": "已提升",
        "roll_back": "客户端已回滚到该层级",
        "roll_back_refused": "有损害,且无处可回滚",
        "harm": "服务中已显示损害",
        "alarm": "服务中触发警报",
        "slo_lost": "SLO 未达标",
        "slo_lost_ended": "SLO 恢复达标",
        "frozen": "放量已停止",
        "skip": "已跳过,其上的层级不再等待它",
        "skip_undone": "已取消跳过",
        "restore_alpha": "尝试次数重新计数",
        "policy": "策略已变更",
        "token_made": "令牌已创建",
        "token_rotated": "令牌已轮换",
        "token_revoked": "令牌已撤销",
        "done": "完成",
        "cancelled": "已取消",
        "aborted": "已中止",
        "failed": "失败",
        "test": "测试消息",
    },
}
"""What has no words here is told by its name in the decision log."""
_BY: Mapping[str, str] = {"en": "by", "zh": "由"}
_FROM: Mapping[str, str] = {"en": "from", "zh": "原层级"}
_CRITERIA: Mapping[str, str] = {"en": "criteria", "zh": "指标"}
_JOB: Mapping[str, str] = {"en": "job", "zh": "任务"}
_ROW: Mapping[str, str] = {"en": "decision log, row", "zh": "决定日志,第"}


def title_of(event: Event, language: str) -> str:
    """One line."""
    return TITLES[language][event.kind]


def lines_of(event: Event, language: str) -> list[str]:
    """What happened to what, then who, when and where to read on."""
    about = " ".join(part for part in (event.model, event.tier) if part)
    happened = ACTIONS[language].get(_word(event), event.action)
    lines = [f"{about}: {happened}" if about else happened]
    if tier := event.facts.get("from"):
        lines.append(f"{_FROM[language]}: {tier}")
    if criteria := event.facts.get("criteria"):
        lines.append(f"{_CRITERIA[language]}: {', '.join(criteria)}")
    lines.append(f"{_BY[language]} {event.actor}, {moment(event.at)}")
    if job := event.facts.get("job"):
        lines.append(f"{_JOB[language]} {job}")
    if seq := event.facts.get("seq"):
        lines.append(f"{_ROW[language]} {seq}" + (" 行" if language == "zh" else ""))
    return lines


def _word(event: Event) -> str:
    return BY_A_PERSON if event.action == "reject" and event.facts.get("seq") else event.action
