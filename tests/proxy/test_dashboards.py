"""What the dashboard and the alerts ask for is on the page of a proxy that runs, labels included."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from service.proxy.config import ProxyConfig
from service.proxy.gauges.exposition import HELP
from service.proxy.traffic.access_lines import FIELDS
from tests.ports import free_port
from tests.proxy.processes import running
from tests.proxy.raw_client import post
from tests.proxy.standing import StartBackend

ROOT = Path(__file__).parents[2]
DASHBOARDS = sorted((ROOT / "deploy/grafana").glob("*.json"))
RULES = sorted((ROOT / "deploy/prometheus").glob("*.yaml"))
OF_THE_PROXY = [path for path in RULES if path.name == "alerts.yaml"]
"""What the other one asks for is on pages of the API and the guard."""
METRIC = re.compile(r"\b(tiergate_[a-z_]+)(\{[^}]*\})?")
OF_PROMETHEUS = {"instance", "job", "le"}
ONLY_IF_CONFIGURED = re.compile("tiergate_proxy_(tls_|queue|limited_|concurrency_|kv_guard_|overflows_)")
"""By names: the proxy of this test has no certificate and no limits."""

Labels = dict[str, set[str]]


def expressions(path: Path) -> Iterator[str]:
    if path.suffix == ".json":
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            yield from (target["expr"] for target in panel.get("targets", ()))
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                yield variable["definition"]
    else:
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from (rule["expr"] for rule in group["rules"])


@pytest.fixture
async def on_the_page(process_config: ProxyConfig, start_backend: StartBackend) -> Labels:
    """Names of samples, and their labels."""
    backend = await start_backend()
    with running(process_config, backend.url, f"http://127.0.0.1:{free_port()}") as proxy:
        await proxy.until("/readyz", 200)
        assert await proxy.ask() == 200
        assert await proxy.ask(post(b'{"model":"ghost"}')) == 404
        page = await proxy.until("/metrics", 200)
        while "tiergate_proxy_errors_total{" not in page or "tiergate_proxy_requests_total{" not in page:
            await asyncio.sleep(0.05)
            page = (await proxy.page("/metrics"))[1]
        proxy.stop()
    found: Labels = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize("path", [*DASHBOARDS, *OF_THE_PROXY], ids=lambda path: path.name)
async def test_every_metric_it_asks_for_exists_with_its_labels(path: Path, on_the_page: Labels) -> None:
    asked = list(expressions(path))
    assert asked
    for expression in asked:
        used: set[str] = set()
        metrics = METRIC.findall(expression)
        assert metrics, expression
        for name, selector in metrics:
            if ONLY_IF_CONFIGURED.match(name):
                assert re.sub("^tiergate_proxy_|_(total|bucket)$", "", name) in HELP
                used |= {"model", "reason", "backend", "outcome", "from", "to"}
                continue
            assert name in on_the_page, expression
            used |= on_the_page[name]
            selected = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector))
            assert selected <= on_the_page[name] | OF_PROMETHEUS, expression
        grouped = {
            label for labels in re.findall(r"by \(([^)]*)\)", expression) for label in labels.split(", ")
        }
        assert grouped <= used | OF_PROMETHEUS, expression


def test_every_metric_of_the_data_plane_that_matters_is_on_the_dashboard() -> None:
    """Whatever is counted for somebody to look at; what only TLS has is for the alerts."""
    shown = {name for path in DASHBOARDS for expr in expressions(path) for name, _ in METRIC.findall(expr)}
    missing = [
        name
        for name in HELP
        if not name.startswith("tls_")
        and not any(f"tiergate_proxy_{name}{suffix}" in shown for suffix in ("", "_total", "_bucket"))
    ]
    assert missing == []


def test_the_dashboard_has_one_place_for_each_panel() -> None:
    for path in DASHBOARDS:
        panels = json.loads(path.read_text())["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        taken: set[tuple[int, int]] = set()
        for panel in panels:
            place = panel["gridPos"]
            cells = {
                (place["x"] + right, place["y"] + down)
                for right in range(place["w"])
                for down in range(place["h"])
            }
            assert not cells & taken, panel["title"]
            assert all(x < 24 for x, _ in cells), panel["title"]
            taken |= cells


def test_every_alert_says_what_is_wrong_and_how_urgent_it_is() -> None:
    for path in RULES:
        rules = [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]
        assert len({rule["alert"] for rule in rules}) == len(rules)
        for rule in rules:
            assert rule["labels"]["severity"] in ("page", "ticket"), rule["alert"]
            assert rule["annotations"]["summary"], rule["alert"]
            assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule["alert"]


OPERATIONS = (ROOT / "docs/operations.md").read_text().splitlines()


@pytest.mark.parametrize("name", HELP)
def test_every_metric_has_its_row_in_the_documentation(name: str) -> None:
    rows = [line for line in OPERATIONS if re.match(rf"\| `tiergate_proxy_{name}(_total)?` \|", line)]
    assert [row.split(" | ")[-1].removesuffix(" |") for row in rows] == [HELP[name]]


def test_no_row_is_about_a_metric_that_does_not_exist() -> None:
    named = [line.split("`")[1] for line in OPERATIONS if line.startswith("| `tiergate_proxy_")]
    bare = [name.removeprefix("tiergate_proxy_") for name in named]
    assert [name for name in bare if name not in HELP and name.removesuffix("_total") not in HELP] == []


def test_every_alert_says_what_to_look_at() -> None:
    told = {line.split(" ")[1] for line in OPERATIONS if line.startswith("| Tiergate")}
    alerts = {
        rule["alert"]
        for path in RULES
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    }
    assert told == alerts


def test_every_field_of_the_access_log_is_explained() -> None:
    text = "\n".join(OPERATIONS)
    section = text[text.index("## Access log") : text.index("## Request ids")]
    assert [field for field in FIELDS if f"`{field}`" not in section] == []
