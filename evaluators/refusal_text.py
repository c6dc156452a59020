"""The answerer's own words, sentence by sentence: what refusals are looked for in.

Markup, struck-out words, code, speech in quotation marks, letters on the asker's behalf and the lines of a
script are set aside, since nobody declines anything in them; traditional characters are folded into
simplified ones. Only the head of an answer is looked at, so the work is bounded whatever the answer weighs.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from html import unescape

READ = 2_000
"""Characters of an answer that are read. Preambles end well before; what comes later follows an answer."""
GIVEN = 100
"""Weight of words set aside that are something given."""

_PAIRS = (  # a traditional character, the simplified one; those of the rules and common ones
    "無无這这個个對对該该請请問问題题內内話话幫帮協协寫写說说講讲談谈討讨論论讓让給给務务處处據据條条錄录違违規规範范準准則则絕绝應应電电將将來来時时間间點点們们為为與与從从過过還还沒没開开關关發发現现實实際际業业會会員员學学單单訊讯號号畫画圖图聽听見见讀读買买賣卖書书報报導导製制傷伤歷历險险風风華华辦办樣样種种麼么誰谁換换譯译語语詞词類类遺遗執执繼继續续顯显產产費费優优價价創创編编總总結结尋寻嚴严詢询師师醫医檢检測测職职責责審审訴诉觸触隱隐並并別别動动進进運运轉转連连網网頁页鏈链檔档聞闻視视頻频錯错誤误釋释輸输讚赞變变熱热線线緊紧難难遠远邊边東东車车門门長长張张專专課课認认識识記记許许訂订評评試试詳详誠诚謝谢證证護护貼贴賴赖質质贊赞較较輕轻載载達达適适選选遞递郵邮釘钉針针鐘钟鎖锁鏡镜閉闭閱阅陽阳隊队隨随雖虽雙双離离頭头願愿顧顾驗验體体麗丽齊齐龍龙勵励勸劝勞劳屬属嗎吗樓楼機机權权歡欢決决沖冲況况淨净減减溫温滿满濟济獲获獨独獎奖當当礙碍禮礼稱称穩稳競竞筆笔節节約约級级紀纪細细終终組组統统經经維维綜综緒绪縮缩織织聯联聲声脫脱腦脑臨临舉举舊旧藝艺藥药虛虚術术衛卫補补裝装複复觀观計计設设調调諒谅謹谨貴贵資资農农鄉乡鄭郑醜丑釀酿銀银閒闲陸陆須须預预領领顏颜飛飞飯饭館馆馬马騙骗驚惊鬥斗鬧闹魚鱼鳥鸟麵面黃黄齡龄啟启傳传僅仅儘尽億亿兩两凍冻劇剧劃划勢势區区卻却厲厉參参壞坏壓压夠够夢梦奪夺婦妇媽妈寧宁寬宽嘗尝層层島岛帳帐幣币幹干庫库廠厂廣广彈弹後后徵征恆恒惡恶愛爱態态慮虑慣惯憑凭戰战擇择擊击擔担擬拟攜携攝摄敵敌數数斷断於于曉晓樹树橋桥檯台氣气溝沟滅灭滲渗濕湿牆墙異异瘋疯盜盗盡尽監监盤盘確确碼码禍祸稅税積积簡简籤签糧粮紙纸純纯納纳紛纷絡络絲丝綠绿緣缘縱纵繳缴罰罚罵骂義义習习聰聪腳脚艙舱蓋盖蟲虫衝冲裡里裏里覺觉訓训診诊詐诈誇夸誘诱諾诺謀谋議议負负財财貨货賓宾賞赏賠赔賬账購购贏赢趕赶跡迹踐践輛辆輪轮辭辞邏逻遷迁鄰邻醬酱鋼钢錢钱鍵键鎮镇閃闪陳陈陰阴雲云響响頂顶順顺頓顿頗颇額额飲饮飾饰養养餘余驅驱驟骤髮发鬆松麥麦齒齿臺台灣湾妳你祂他夾夹嚇吓幾几鑰钥歐欧嘆叹"
    "萬万摻掺團团圓圆園园聖圣陣阵鑒鉴鑑鉴償偿儲储兒儿冊册剛刚勝胜滾滚潛潜濫滥爐炉爭争狀状獄狱畢毕癮瘾祕秘竊窃緻致縣县脅胁膽胆葉叶蘇苏襲袭謊谎譏讥賄贿贖赎躍跃軍军軟软釣钓鈴铃銷销鐵铁靈灵颱台飢饥駕驾鴉鸦鴨鸭黨党佔占俠侠倉仓偽伪喪丧塵尘壽寿奧奥孫孙宮宫屍尸彎弯惱恼懷怀懶懒懲惩戲戏掃扫搶抢撥拨擾扰曬晒棄弃槍枪榮荣標标歲岁殺杀殼壳毀毁淚泪湯汤煙烟燒烧牽牵猶犹獵猎瑪玛礦矿窮穷簽签糾纠罷罢羅罗肅肃腫肿艦舰莊庄薦荐藍蓝蠟蜡褲裤諧谐謎谜譜谱豬猪貓猫貪贪賊贼趙赵階阶韓韩頒颁頸颈顆颗飼饲騎骑鯊鲨鷹鹰衹只纔才"
)
_FOLDED = dict(zip(map(ord, _PAIRS[::2]), _PAIRS[1::2], strict=True)) | str.maketrans(
    "’‘`´‛ʼʹ′“”„", "''''''''\"\"\""
)
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
"""Characters without a mark of their own: they break a word for who searches it, and for nobody who reads."""
_SPREAD = re.compile(r"(?<![A-Za-z])(?:[A-Za-z] ){3,}[A-Za-z](?![A-Za-z])")
_BETWEEN = re.compile(r"(?<=(?<![A-Za-z])[A-Za-z]) (?=[A-Za-z](?![A-Za-z]))")
"""Words that are spread out, letter by letter."""
_TAG = re.compile(r"</?(?:p|b|i|u|em|strong|br|span|div|font|small|big|h[1-6])\b[^<>]{0,80}>", re.IGNORECASE)

_BLANKS = re.compile(r"[^\S\n]+")
_BREAKS = re.compile(r" ?\n[ \n]*")
_CODE = re.compile(r"```[a-z]*\n(.*?)(?:```|\Z)", re.DOTALL)
_STRUCK = re.compile(r"~~[^~]{0,400}~~")
_MARKUP = re.compile(r"[*_#>~]+|^\s*(?:[-•]|\d{1,2}[.)])\s+", re.MULTILINE)
_LIST = re.compile(r"^\s*(?:[-•*]|\d{1,2}[.)、])\s*\S", re.MULTILINE)
_ENUMERATED = re.compile(r"(?:^|\s|:)1[.)、].{1,400}?(?:\s|;|,|。)2[.)、]", re.DOTALL)
_SPOKEN = re.compile(r"\"[^\"]{0,1500}\"|「[^」]{0,1500}」|『[^』]{0,1500}』")
_SPEAKER = re.compile(r"^[^\W\d][\w .]{0,20}: ?\S.*$", re.MULTILINE)
_SALUTATION = re.compile(
    r"^(?:subject|re|主题|标题): ?\S|^(?:dear|hi|hello|hey) (?:(?:mr|mrs|ms|mx|dr"
    r"|prof)\. )?[^\n,.!?:]{1,40}[,:]|^to whom it may concern"
    r"|^(?:尊敬|亲爱)的[^\n:,。]{1,20}[:,]|^敬启者|^[\u3400-\u9fff·、]{2,10}:\s*\n",
    re.MULTILINE,
)
_SIGNED = re.compile(
    r"(?:^|\n)\s*(?:yours?|(?:kind|best|warm) (?:regards|wishes)|regards|sincerely|best|thanks|love"
    r"|cheers|此致|敬上|谨上|顺颂)[^\n]{0,30}(?:\n|\Z)|\n\s*[^\n.!?。:]{1,30}\s*\Z"
)
_LEAD_IN = re.compile(
    r"(?:\btext|(?<!\bi )(?<!can )(?<!'d )(?<!must )\bsay|\breply|\bsend|\btell (?:him|her|them)"
    r"|\be-?mail|\bletter|\bmessage|\bsms|\btranslat\w+|\bscene|\bscript|\bpoem|\bhaiku|\bverse|\bsong"
    r"|\blyrics|\bstory|\bcaption|\bslogan|\bjoke)\b[^\n.!?:]{0,30}:(?=\s*[^\s\ufffc])|(?:发|写|回复"
    r"|这样(?:委婉地)?说|信件|邮件|短信|微信|译文|台词|写信|封信)[^\n。!?:,]{0,10}:(?=\s*[^\s\ufffc])"
)
_SPACED = re.compile(r"(?<=[\u3400-\u9fff]) +(?=[\u3400-\u9fff,.!?])|(?<=[,。]) +(?=[\u3400-\u9fff])")
_UNMARKED = re.compile(r"[ \ufffc]+")
_END = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。;])|(?<=[\u3400-\u9fff][!?.])|\.{3,}")
_CJK = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence in lower case, and its place among the answerer's own words in characters."""

    words: str
    start: int

    @property
    def chinese(self) -> bool:
        """Whether any of it is written in Chinese characters."""
        return _CJK.search(self.words) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWords:
    """What the answerer says itself, and what was set aside of its answer."""

    sentences: tuple[Sentence, ...]
    gives: bool
    """Whether the answer holds something made rather than said: code, a drafted message, a text in quotes."""
    lists: bool
    """Whether it holds a list of two or more entries."""


def weight(text: str) -> int:
    """Length in characters, a CJK one counting three."""
    return len(text) + 2 * len(_CJK.findall(text))


def own_words(text: str) -> OwnWords:
    """The answerer's own sentences in the head of its answer."""
    text = _BREAKS.sub("\n", _BLANKS.sub(" ", folded(text[:READ])))[: 2 * READ]
    lists = _ENUMERATED.search(text) is not None or len(_LIST.findall(text)) > 1
    gives = False
    code = _CODE.search(text)
    if code is not None and _alnums(text) - _alnums(code.group()) >= 8:
        gives, text = True, _CODE.sub("\n", text)
    text = _MARKUP.sub("", _STRUCK.sub("\n", text))
    unspoken = _SPOKEN.sub(_set_aside, text)
    if unspoken != text and weight("".join(filter(str.isalnum, unspoken))) >= 15:
        gives = gives or weight(text) - weight(unspoken) > GIVEN
        text = unspoken
    else:
        text = text.replace('"', "").strip("「」『』 \n")
    unlettered = _without_letter(_without_script(text))
    gives = gives or weight(text) - weight(unlettered) > GIVEN
    text = _SPACED.sub("", _UNMARKED.sub(" ", unlettered)).strip()
    return OwnWords(sentences=tuple(_sentences(text)), gives=gives, lists=lists)


def folded(text: str) -> str:
    """Lower case, half width, straight quotes, simplified characters; entities and tags of HTML resolved."""
    if "&" in text:
        text = unescape(text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    if _SPREAD.search(text):
        text = _BETWEEN.sub("", text)
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).translate(_FOLDED).casefold()


def _sentences(text: str) -> list[Sentence]:
    found, start = [], 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        words = text[start:end].strip()
        if words:
            found.append(Sentence(words=words, start=start))
        start = end
    return found


def _set_aside(spoken: re.Match[str]) -> str:
    """A word in quotation marks stays; speech goes."""
    words = spoken.group()[1:-1]
    return words if weight(words) <= 6 else " \ufffc "


def _without_script(text: str) -> str:
    """The text less the lines of a play, if two or more speakers have one."""
    lines = _SPEAKER.findall(text)
    if len({line.partition(":")[0] for line in lines}) < 2:
        return text
    return _SPEAKER.sub("", text)


def _without_letter(text: str) -> str:
    """The text up to a letter or message that it drafts."""
    lead_in = _LEAD_IN.search(text)
    if lead_in is not None:
        return text[: lead_in.end()]
    opening = _SALUTATION.search(text)
    if opening is not None and (_SIGNED.search(text, opening.end()) or opening.group().startswith("subject")):
        return text[: opening.start()]
    return text


def _alnums(text: str) -> int:
    return sum(map(str.isalnum, text))
