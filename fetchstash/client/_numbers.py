"""The sizes that an error states: only numbers that the words of their own sentence mark so.

A number that merely stands in the same error (a port, a request id, a latency, an error number) is
never a size, and neither is one that is only larger or smaller than another. Texts are in lower
case, one line for each value of the error.
"""

import re
from typing import Literal, NamedTuple

from fetchstash.client._rules import compiled

# ruff: noqa: E501, RUF001 - a pattern reads better whole; units and words are of many languages

MediaUnit = Literal["pictures", "documents", "recordings", "media", "pages", "pixels", "bytes"]
"""What a limit on media counts; ``media`` counts pictures and documents together, ``bytes`` and
``pixels`` measure one of them."""

_N = r"(\d(?:[\d,_]*\d)?(?:\.\d+)?)(?: ?([kmg]i?b|[km])\b)?"
# Of tokens in thousands, of bytes as they are counted.
_SCALE = {"k": 1_000, "m": 1_000_000, "kb": 2**10, "mb": 2**20, "gb": 2**30}
SMALLEST, LARGEST = 512, 10**10
"""No window or body limit is outside: such a number is a count, an index, a code or an id."""


class Numbers(NamedTuple):
    """The sizes that an error states, in its own unit (bytes where it says KB or MB), or None."""

    limit: int | None = None
    requested_input: int | None = None
    requested_output: int | None = None


def _patterns(*patterns: str) -> tuple[str, ...]:
    return tuple(pattern.replace("{N}", _N) for pattern in patterns)


_TOKENS = r"(?:tokens? de|token\w{0,4}|jetons?|トークン|토큰|токен\w*|टोकन|โทเค็น|positions)"

# Each list reads one field, the first pattern that finds a number wins.
_LIMITS = _patterns(
    r"\d\)? \+ \d+ > {N}",
    r"\d\)? ?(?:tokens? )?(?:>|≥)=? ?(?:[a-z_]+[ =]{1,2})?\(?{N}",
    r"\bfull[^\d\n]{1,4}\d[\d,]* ?(?:/|of) ?{N}",
    r"\b(?:window|ceiling|cap)(?: is| of)?:? {N}",
    r"\bfit (?:into|in|within) (?:the )?{N}",
    rf"\d ?(?:/|of|von|sur|su|z|из|з) ?{{N}} ?{_TOKENS}",
    rf"\d {_TOKENS} (?:of|von|sur|su un massimo di|z|out of|из|з) {{N}}",
    r"[:：] ?\d[\d,]* ?/ ?{N}",
    r"\bneeds? \d[\d,]* ?(?:tokens?)?,? ?(?:and |but )?(?:have|has|got|only)(?: only)? {N}",
    r"{N} can be (?:held|read|processed|handled|taken)",
    r"(?:допустимо|максимум|не более|лимит)\W{0,3}{N}",
    r"> ?{N} ?(?:tokens? )?(?:maximum|max|limit)",
    r"must be <= ?{N}",
    r"should be \[\d+, ?{N}",
    r"(?:expected|range|between|within)[^\d\n]{0,8}\d+ ?(?:\.\.|to|and|-|–) ?{N}",
    r"limit for this model is {N}",
    r"context length of \S{1,80} is {N}",
    r"(?:maximum |max |model'?s? |available |a )?context(?: |_)?(?:length|window|size)?\b(?: limit| budget)?(?:,? (?:is|of|was|only|has|been|exceeded|the|model|for|to)\b)*(?:[^\w.\n]|\.(?! )|上限){0,6}{N}(?! (?:prompt|input))",
    r"max(?:imum)? (?:allowed )?(?:prompt length|model length|sequence length|input length|input tokens?|input characters|request body size|content length|"
    r"number of (?:input )?tokens(?: allowed)?|payload size|body size|document size|size|length|tokens)\b(?! \d+ exceeded)[^\d\n]{0,40}{N}",
    r"(?:n_ctx|window limit|configured limit|token limit|model limit|size limit|input limit)\b(?! exceeded by)[^\d\n]{0,30}{N}",
    r"max_(?!(?:completion_|new_|output_|total_)?tokens)\w{1,30}(?: is)?\W{1,4}{N}",
    r"max(?:imum)? (?:(?!output|completion|new\b|response)[^\d\n.;]){0,60}\b(?:is|of):? {N}(?! tokens? (?:from|for the completion))",
    r"{N}(?:[- ]tokens?[ -]|-)(?:context|limit|maximum|window)",
    r"{N}[- ]bytes? (?:limit|maximum)",
    r"\b(?:with|of|has|the|a|exceeds?) {N} (?:maximum|max|context|limit|window)",
    r"longer than (?:the )?(?:maximum|model'?s?)[^\d\n]{0,60}{N}",
    r"(?:must|should) (?:be|have|contain) (?:less than|at most|up to|fewer than) {N}",
    r"(?:cannot|must not|should not) (?:exceed|be (?:larger|greater|longer|bigger|more) than)\b[^\d\n]{0,30}{N}",
    r"\b(?:over|above|(?:longer|larger|greater|higher|bigger|more) than) (?:the )?{N}",
    r"(?:less|fewer) than {N} tokens",
    r"less than or equal to {N}",
    r"(?:supports?|allows?|accepts?|takes?) (?:only )?(?:up to |at most |a maximum of )?{N}",
    r"(?:exceeds?|over|above|than|exceeded) (?:the )?(?:maximum|limit|allowed)\b(?! (?:output|completion))[^\d\n]{0,40}{N}",
    r"\blimit(?: is| of| was)?[:=]? ?{N}",
    r"\blimit (?:of|for) (?:[a-z']+ ){1,4}(?:is|was):? {N}",
    r"larger than max \(\d+ vs\.? {N}\)",
    r"expected maxlength: {N}",
    r"\(?\bmax\.? {N}",
    r"(?:above|over|than) what [^\d\n]{0,60}{N}",
    r"(?:大于|大於|高于|窗口)[^\d\n]{0,12}{N}",
    r"exceed(?:s|ed)? (?:the )?{N}",
    rf"(?<!add )(?<!adds )\b(?:only|at most|up to) {{N}}(?: {_TOKENS})?",
    rf"{{N}} (?:{_TOKENS} )?(?:at most|(?:is|are) (?:the (?:most|limit|maximum)|allowed)|allowed|erlaubt|permitidos|autorisés)",
    r"(?:máximo|maximum|maximal|höchstens|limite|límite)(?! (?:output|completion|new|response))[^\d\n.]{0,20}{N}",
    r"\b(?:slot|replica|model|engine|server) (?:has|holds)(?: only)? {N}",
    r"\bcan (?:only )?(?:hold|read|process|handle|take) {N}",
    r"\ballowed:? {N}",
    rf"(?:overflow|exceeded|full) (?:after|at) {{N}} {_TOKENS}",
    rf"(?:window|context|contexte|contexto|fenster)\b[^\d\n]{{0,30}}\({{N}} {_TOKENS}\)",
    r"(?:范围|範圍|範囲|범위)[^\d\n]{0,6}\[\d+, ?{N}",
    r"> ?{N}",
    r"(?:上限|限制|超出|超过|最大|支持的|最多支持|최대)(?:(?!输入|请求|提供|当前|요청)[^\d\n]){0,20}{N}",
)
_INPUTS = _patterns(
    r"\({N} (?:in the messages|in your prompt|of text input)",
    r"{N} tokens from the input",
    r"{N} \+ \d+ >",
    rf"{{N}} ?(?:/|of|von|sur|su|z|из|з) ?\d[\d,.]* ?{_TOKENS}",
    rf"{{N}} {_TOKENS} (?:of|von|sur|su un massimo di|z|out of|из|з) \d",
    r"[:：] ?{N} ?/ ?\d{3}",
    r"\bfull[^\d\n]{1,4}{N} ?(?:/|of) ?\d",
    r"given: {N} `?inputs",
    r"(?:messages|prompt|input) (?:resulted in|contains?|has|is)(?: at least)? {N}(?: input)? tokens",
    r"{N} (?:input|prompt) tokens",
    rf"{{N}} {_TOKENS},? (?:window|limit|max\w*|context)\b",
    r"\btotal of {N} tokens",
    r"\b(?:chat|conversation|thread|history) (?:is|has) {N} tokens",
    r"{N} tokens,? (?:do|does|did) not fit",
    r"\b(?:request|payload|body|message) size (?:of )?{N}",
    r"too many (?:\w+ )?tokens\b[^\d\n]{0,14}{N}",
    r"sequence length {N} (?:is|exceeds)",
    r"\byou (?:gave|sent|passed|submitted)(?: me| us)? {N}",
    r"max_total_tokens \({N}",
    r"request (?:has|contains) {N}",
    r"{N}\)? ?(?:tokens? )?(?:>|≥)",
    r"(?:is |are )?too (?:long|large|big)(?:(?: (?:body|request|message|prompt|input|payload))?:| \()? ?\(?{N}",
    rf"(?:too (?:long|large|big)|not fit|zu (?:lang|groß)|trop long\w*|demasiado larg\w+|muito long\w+|troppo lung\w+|za dług\w+|слишком \w+|太长|太長|过长|過長)[^\d\n:：,]{{0,40}}[:：] ?{{N}} {_TOKENS}",
    r"requested:? {N}(?! output)",
    r"(?:n_keep|n_prompt_tokens|prompt_tokens|input_tokens)\"?[:=] ?{N}",
    r"keep the first {N} tokens",
    r"input token count (?:is )?\(?{N}",
    r"number of (?:input |prompt )?tokens,? (?:is )?\(?{N}",
    r"(?:total message size|actual body size|body size|input length|prompt length|current length is|(?<!context )(?<!model )(?<!sequence )length|string length)\b[ (]*(?:is |of )?{N}",
    r"(?<!total )(?<!sequence )\blength of (?:[\w,]+ ){1,8}is {N}",
    r"(?:request|prompt|input|count|tokens|token count of) \(?{N}",
    r"(?:prompt|input|request|conversation|messages?) with {N} tokens",
    r"(?:prompt|input|request|body|payload|message|sequence)(?: body| payload| size| length| token count)? of (?:length |size )?{N}",
    r"message larger than max \({N}",
    r"request input token count: {N}",
    r"requested (?:about |a total of )?{N} tokens",
    r"your request will take {N} tokens",
    rf"\b(?:needs?|wanted|wants|used|uses|sent|you sent is|adds? up to|has|have|holds?|contains?|received|got) (?:a total of |about )?{{N}} ?(?:{_TOKENS}|bytes|\b)",
    r"(?:actual|got|received|given):? {N}",
    r"\b(?:payload|body|request|message)(?: size)?: {N}",
    r"{N}\)? (?:dépass|supera|excede|excède|überschr|überst|przekracz|превышает|перевищ|aşıyor|vượt|melebihi)",
    r"{N} が",
    rf"(?:prompt|anfrage|invite|entrada|mensajes?|conversation|eingabe)\b[^\d\n]{{0,20}}\({{N}} {_TOKENS}\)",
    rf"{{N}} {_TOKENS} (?:angefragt|solicitados|demandés|requested|(?:were |was )?(?:sent|given))",
    rf"{{N}} {_TOKENS}が(?:入力|要求|送信)",
    rf"\b(?:tem|tiene|hat|a|contient|contiene|enthält) {{N}} {_TOKENS}",
    r"(?:запрошено|получено|передано|요청|입력)\W{0,3}{N}",
    r"limit of [\d,]+ (?:tokens )?exceeded \({N}\)",
    r"(?:长度|请求|输入|提供了?|包含)\W{0,3}{N}",
    r"(?:長すぎ|超え)\S{0,6}[::] ?{N}",
)
_OUTPUTS = _patterns(
    r"{N} in the (?:completion|output)",
    r"{N} (?:tokens )?for the completion",
    r"\d \+ {N} >",
    r"and {N} `?max_new_tokens",
    r"requested {N} output tokens",
    r"max_(?:completion_|new_|output_)?tokens['\"`]?(?: is too large:)? \(?{N}",
    r"max(?:imum)? (?:new|output|completion) tokens \({N}",
)
# The parts of a request, if each is stated: their sum is the input, if the sentence adds them. An
# exception repeats its sentence (as message, body, text of the response, cause), so that each part
# counts once, by its name.
_INPUT_PARTS = _patterns(
    r"{N} (?:in|of) (?:the |your )?(?:messages|prompt|functions|tools|text input|tool input|tool definitions|images?)\b",
    r"(?<!max )(?<!maximum )\b(?:input|prefix|prompt|query|system|tool|image) (?:tokens|length) \({N}\)",
    r"\b(?:prefix|current) {N}(?= \+| exceeds)",
)
_ADDS = re.compile(
    r"\+|\bplus\b|\bsum\b|\btotal\b|\btogether\b|\d[^\n]{1,40}(?:, |and )\d[\d,]* (?:in|of) "
)
_TOTAL = _patterns(r"requested (?:about |a total of )?{N} tokens")
_BY = _patterns(r"\bby {N} tokens")
_MESSAGES = re.compile(
    r"\$\.messages'? is too long|'messages'(?: is|:)? too long|\b(?:too many|number of|count of|max\w*) messages\b|\d messages\b"
)
"""What counts messages, not tokens."""

# Numbers that are no sizes, whatever stands beside them: "(2013)" is MiniMax's code, "code: 336007"
# Baidu's, a status may stand at the beginning; addresses with their ports, moments, durations,
# ids, attempts and retries.
_NO_SIZES = re.compile(
    r"\(2013\)|\bcode['\"]?[:=]? ?['\"]?\d+|^\W*\d{3,4} (?!tokens|bytes)|\bhttps?://[^\s'\"<>()]+|[a-z][\w.-]*:\d{2,5}\b|\d+(?:\.\d+){3}(?::\d+)?|"
    r"\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d)?\S*)?|"
    r"\b\d[\d.,]* ?(?:ms|milliseconds?|msecs?|s|secs?|seconds?|minutes?|mins?|hours?|%)\b|"
    r"\b(?:request|req|trace|span|session|org|organization|correlation|job)?[ _-]?(?:id|no|nr|ref|reference|ticket|incident|case|#)s?\b\W{0,3}[\w-]*\d[\w-]*|"
    r"\b(?:attempts?|retries|retry|port|shard|region|node|pid|worker|line|seed|trace|errno|latency|version)\b[ :=#]{1,3}\d[\d.]*(?: of \d+)?"
)
_CHARACTERS = re.compile(
    r"\d[\d,_.]* ?(?:characters?|chars?|words?|字符|文字|글자|字)(?![a-z])|"
    r"\b(?:characters?|chars?)\b(?: \w+){0,2}? (?:is|are|of|limit:?)\W{1,3}\d[\d,_.]*"
)
"""Sizes in characters and words, which are no tokens."""

CUE_CHARS = 48
"""How far from a number the words may stand that make it a size."""

_ANY_SIZE = re.compile(rf"(?<![\w.#]){_N}")
_AFTER = re.compile(r"[^\d\n.;!?。；！？]{0,32}")
_LIMIT_WORDS = (
    r"limit\w*|max\w*|most|up to|only|than|full|exhausted|exceed\w*|over|above|beyond|past|under|below|within|ceiling|cap(?:acity|ped)?|supports?|accepts?|handles?|takes?|fits?|holds?|process|reads?|allow\w*|permit\w*|"
    r"window(?: size)?(?: is| of|:)?|context(?: length| size)?(?: is| of|:| =)|loaded with|deployed with|stops? at|ends? at|room for|space for|serves?|admit\w*|принимает|приймає|consider\w*|accetta\w*|accepte\w*|aceita\w*|vs|versus|carr(?:y|ies)|\w*max\w*(?: allows| is)?|configured (?:for|with|to)|built (?:for|with)|started with|session_len(?: is)?|n_ctx(?: is)?|ventana|fenster|fenêtre|janela|finestra|ok(?:no|na|nie)|вікн\w+|окн\w+|pencere\w*|cửa sổ|jendela|контекст\w*|kontekst\w*|kontext\w*|contexto|contexte|contesto|konteks|bağlam|ngữ cảnh|[<≤]=?|"
    r"grenze|höchst\w*|maximal\w*|erlaub\w*|limite|límite|máxim\w+|massim\w+|giới hạn|tối đa|maks\w*|sınır\w*|en fazla|bata\w*|макс\w+|лимит\w*|допус\w+|допуст\w+|najwyżej|"
    r"최대|한도|上限|最大|最多|限制|限度|超出|超过|超過|الحد|الأقصى|अधिकतम|सीमा|สูงสุด|ขีดจำกัด"
)
_INPUT_WORDS = (
    r"prompt\w*|inputs?|messages?|conversation|chat|history|transcript|thread|requested|request(?: is| of| has)?|got|received|given|sent|has|have|had|contains?|used|uses|needs?|wanted|totals?|totall?ing|"
    r"counted|estimated(?:_\w+)?(?: at)?|\w*input(?:_tokens)?|tokeni[sz]e[sd] to|tokens(?= ?=)|comes to|came to|amounts to|adds up to|resulted in|measured|took|actual|current(?:ly)?|asked for|"
    r"angefragt|gesendet|hat|enthält|envoyé\w*|demandé\w*|enviad\w+|solicitad\w+|tiene|tem|inviat\w+|wysłan\w+|запрошен\w+|получен\w+|передан\w+|gönderil\w+|đã gửi|yêu cầu|dikirim|"
    r"当前|实际|数|數|输入|輸入|提供了?|共|入力|現在|요청|입력|현재"
)
_CUES = (
    ("limit", rf"(?:\b|(?<=[^\x00-\x7f]))(?:{_LIMIT_WORDS})"),
    ("input", rf"(?:\b|(?<=[^\x00-\x7f]))(?:{_INPUT_WORDS})"),
)
_UNIT_AFTER = rf"[ )-]{{0,2}}(?:{_TOKENS}|tokeny?|tokenów|tokenov|токен\w*|jeton\w*|टोकन|โทเค็น|tokene\w*)?[ )-]{{0,2}}"
_OF_TOKENS = re.compile(_UNIT_AFTER.replace(")?", ")", 1))
_TOKENS_ARE = re.compile(r"tokens?\)? ?[=:(] ?$")
_BETWEEN = re.compile(
    r"(?:\W|(?:is|are|was|of|to|at|the|its|a|an|about|around|some|length|size|count|total|tokens?|with|for|set|modell?\w*|modèle|моделі|модели|mô hình|del?|du|des|da|do|к|la)\b){0,8}"
)
_LIMIT_AFTER = re.compile(
    rf"(?:{_UNIT_AFTER.replace(')?', ')', 1)}|-)(?:limit|max\w*|window|ceiling|cap|context)\b|"
    rf"{_UNIT_AFTER}(?:(?:is|are) (?:the (?:most|limit|max\w*)|allowed|available|supported|permitted)|available|allowed|permitted|supported|erlaubt|autorisés|permitidos|can be|fit\b|を超え|を上回|を超過|초과|을 초과|를 초과)"
)
_INPUT_AFTER = re.compile(
    rf"{_UNIT_AFTER}(?:>|exceed|surpass|overflow|is (?:over|more|above|beyond|greater|larger|longer|too)|are (?:over|more|above|too)|(?:was|were) (?:sent|given|requested|provided|received|passed|supplied|counted)|in (?:your|the) (?:prompt|messages|input|request)|requested|sent|given|provided|do(?:es)? not|long\b|will not|won't|can(?:not|'t))"
)
_OUTPUT_CUE = re.compile(
    r"output|completion|max_(?:new_|completion_)?tokens|generat|answer|response|thinking|budget"
)
_ROUNDED = frozenset({"k", "m"})
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:\s\d{3})+(?![\d.,]\d)")
_GROUPED_TOKENS = re.compile(rf"{_GROUPED.pattern}\s(?:{_TOKENS}|bytes)")
_DIGITS = re.compile(r"\d[\d,_.]*")


def read_numbers(line: str) -> Numbers:
    """Read the sizes out of the words of one line, in lower case."""
    line = _CHARACTERS.sub("#", _NO_SIZES.sub("#", _joined(line)))
    if _MESSAGES.search(line):
        return Numbers()
    excess = _first(_BY, line)
    if excess:
        line = compiled(_BY[0]).sub("#", line)
    limit, output = _first(_LIMITS, line), _first(_OUTPUTS, line)
    # Of readings of the input one that is above the limit goes first: it is what was refused.
    wanted = _first(_INPUTS, line, above=limit or 0) or _first(_INPUTS, line)
    if limit is None or wanted is None:
        limit, wanted = _by_cues(line, limit, wanted, output)
    total = _first(_TOTAL, line)
    parts: dict[str, int] = {}
    for part in (part for pattern in _INPUT_PARTS for part in compiled(pattern).finditer(line)):
        parts.setdefault(_DIGITS.sub("", part[0]), _number(part[1], part[2]))
    if len(parts) > 1 and _ADDS.search(line):
        wanted = sum(parts.values())
    if limit and excess and wanted is None:
        return Numbers(limit, limit + excess, output)
    if output is not None and total is not None and wanted in {None, total}:
        wanted = max(total - output, 0)
    if output is None and limit and wanted is not None and wanted <= limit:
        # Of two readings that contradict each other the input is the weaker one.
        wanted = None
    return Numbers(limit, wanted, output)


def token_counts(line: str) -> list[int]:
    """Return the sizes of a line that are said to be of tokens."""
    line = _NO_SIZES.sub("#", _joined(line))
    counted = (
        match
        for match in _ANY_SIZE.finditer(line)
        if _OF_TOKENS.match(line, match.end())
        or _TOKENS_ARE.search(line, max(match.start() - 12, 0), match.start())
    )
    sizes = (_number(match[1], match[2]) for match in counted)
    return [size for size in sizes if SMALLEST <= size <= LARGEST]


def _by_cues(
    line: str, limit: int | None, wanted: int | None, output: int | None
) -> tuple[int | None, int | None]:
    """Return limit and input, of which one that no pattern found is read by the words beside it.

    The nearest words decide: those between the number and the one before it, or the next one. Two
    numbers of one role contradict each other, and neither is taken.
    """
    found = {role: set[int]() for role in ("limit", "input", "weak limit", "weak input")}
    ends = [0]
    for match in _ANY_SIZE.finditer(line):
        size = _number(match[1], match[2])
        before = line[max(ends[-1], match.start() - CUE_CHARS) : match.start()]
        after = _AFTER.match(line, match.end())
        ends.append(match.end())
        if match[2] in _ROUNDED and "token" not in line:
            continue
        if SMALLEST <= size <= LARGEST and size not in {limit, wanted, output}:
            role = _role(
                re.split(r"(?<!max)[.;!?。；！？]\s?|\((?!max)(?=[a-z])", before)[-1],
                after[0] if after else "",
            )
            if role:
                found[role].add(size)
    limits = found["limit"] or found["weak limit"]
    inputs = found["input"] or found["weak input"]
    if limit is None and len(limits) == 1:
        limit = min(limits)
    if wanted is None and len(inputs) == 1:
        wanted = min(inputs)
    counts = token_counts(line)
    others = [size for size in counts if size not in {limit, wanted}]
    if len(others) == 1 and output is None and _OUTPUT_CUE.search(line) is None:
        # Of two sizes, one of them of tokens, the words of one say what the other is.
        if wanted is None and limit is not None and others[0] > limit:
            wanted = others[0]
        elif limit is None and wanted is not None and others[0] < wanted:
            limit = others[0]
    return limit, wanted


def _role(before: str, after: str) -> str:
    """Return the role of a number by the words around it, "" if none make it a size.

    It is weak by the words before the number, which may belong to another.
    """
    if _OUTPUT_CUE.search(before) or _OUTPUT_CUE.search(after):
        return ""
    if _LIMIT_AFTER.match(after):
        return "limit"
    if _INPUT_AFTER.match(after):
        return "input"
    end, role = max(
        ((match.end(), role) for role, cues in _CUES for match in compiled(cues).finditer(before)),
        default=(0, ""),
    )
    # A number that is not said to be of tokens stands right behind its words.
    close = _BETWEEN.fullmatch(before, end)
    return f"weak {role}" if role and (close or _OF_TOKENS.match(after)) else ""


def _joined(line: str) -> str:
    """Return a line whose numbers have no spaces inside: "36 110 tokens"."""
    if not _GROUPED_TOKENS.search(line):
        return line
    return _GROUPED.sub(lambda number: re.sub(r"\s", "", number[0]), line)


def _first(patterns: tuple[str, ...], line: str, above: int = -1) -> int | None:
    for pattern in patterns:
        for match in compiled(pattern).finditer(line):
            # "256K" alone says neither of what, nor whether that is 256,000 or 262,144.
            if match[2] in _ROUNDED and "token" not in line:
                continue
            size = _number(match[1], match[2])
            smallest = 1 if pattern in _OUTPUTS or pattern in _INPUTS[:4] else SMALLEST
            if max(smallest, above + 1) <= size <= LARGEST:
                return size
    return None


def _number(digits: str, unit: str | None = None) -> int:
    scale = _SCALE.get((unit or "").replace("i", ""), 1)
    return int(float(digits.replace(",", "").replace("_", "")[:15]) * scale)


# Media

MEDIA = (
    r"(?:images?(?!_?generation)(?:_urls?)?|pictures?|photos?|screenshots?|bild(?:er)?|imágenes|videos?|audio (?:clips?|files?|inputs?)|"
    r"attachments?|documents?|dokumente|data[- ]ur[il]s?|pdfs?|(?:pdf |document )?pages?|seiten|media|multi-?modal|图片|图像|文档|页)"
)
"""What counts as a picture, a document or a recording in the words of an error."""

_ITEMS = rf"(?:\w+ ){{0,2}}{MEDIA}"
_MOST = r"(?:at most|(?<!add )(?<!adds )up to|no more than|more than|fewer than|maximum(?: of| is)?|max(?: of)?|limit(?:ed to| of| is)?|only|höchstens|como máximo|maximal|最多(?:支持)?|上限(?:为)?)"
_MEDIA_LIMITS = _patterns(
    r"\+ \d[\d,]*(?: \w+)? > {N}",
    r"> ?{N}",
    r"exceeds? (?:the )?{N} ?(?:maximum|limit)",
    r"\blimit (?:the )?(?:number|count) of [^\d\n]{0,40}? to {N}",
    r"\b(?:image|video|audio|images|mm)=['\"]?{N}",
    rf"\b{_MOST}\W{{0,3}}{{N}}",
    r"(?:exceeds?|over|above|than) (?:the )?(?:maximum|max|limit|allowed)\b[^\d\n]{0,40}{N}",
    r"(?:max(?:imum)?|allowed|limit)\b[^\d\n]{0,60}?(?:is|of|:|=|are|\()\W{0,3}{N}",
    r"(?:max|limit|allowed|maximum)[^\d\n]{0,40}{N}",
    r"(?:must|should|may) (?:be|have|weigh|measure) (?:under|below|less than|smaller than|within|at most)[^\d\n]{0,12}{N}",
    r"(?:larger|bigger|wider|taller|higher|longer|over|greater) than {N}",
    r"\b(?:above|over) (?:the )?{N}",
    r"\bthan the {N}",
    r"\b(?:cap|ceiling|budget)(?: is| of|:)? {N}",
    rf"\d (?:\w+ )?{MEDIA} of {{N}}",
    r"最多(?:支持)?\W{0,3}{N}",
    rf"{{N}} {_ITEMS} (?:at most|(?:is|are) the (?:most|limit|maximum))",
    r"(?:supports?|accepts?|allows?|takes?|reads?|serves?|processes) (?:only )?{N}",
    r"{N} (?:is the (?:maximum|limit|most)|are allowed|allowed|erlaubt|per\b|at most)",
    r"exceed\w* {N}",
    r"\b(?:may|can) (?:only )?(?:carry|have|hold|contain|include) (?:\w+ )?{N}",
    r"(?:erlaubt|permitid[oa]s?|autorisé\w*|consentit\w+) (?:sind |son |sont |sono )?{N}",
)
_MEDIA_INPUTS = _patterns(
    r"{N}(?: \w+){0,3} > ?\d",
    r"{N} (?:\w+ ){0,2}(?:were |was )?(?:given|sent|provided|passed|found|supplied|gesendet|enviadas)",
    r"(?:sent|got|given|passed|provided|received|contains?|has|have|includes?|found|with)\W{0,3}(?:\w+ )?{N}",
    rf"{{N}} {_ITEMS}",
    rf"{MEDIA}\b[^\d\n]{{0,20}}\({{N}}\)",
    r"(?:resolution|is) \(?{N} ?[x×]",
    r"\b(?:width|height|edge|side)(?: of)? {N}",
    r"提供了? ?{N}",
    r"(?<![x×]){N} ?[x×] ?\d{3}",
    r"(?:is|size|of)\W{0,3}{N}(?: bytes)?(?=,? ?(?:which|exceeds|that|is (?:above|over|more|larger)|;|>))",
    r"\bcount\W{1,3}{N}",
    r"\({N},? (?:max|limit|allowed)",
    r"\badds? up to {N}",
    r"\btoo (?:wide|tall|high|large|big|long):? {N}",
)
_SUM = re.compile(r"(\d[\d,]*)(?: [a-z]+){0,2} \+ (\d[\d,]*)(?: [a-z]+){0,2} >")
_UNITS: tuple[tuple[MediaUnit, re.Pattern[str]], ...] = (
    ("media", re.compile(r"images? and documents?|pages? \+ \d+ images?|\bmedia\b")),
    ("pixels", re.compile(r"pixel|\bpx\b|dimension|resolution|\d ?[x×] ?\d{3}|megapixel")),
    ("bytes", re.compile(r"\d ?[kmg]i?b\b|\bbytes\b")),
    ("pages", re.compile(r"\bpages?\b|seiten|页")),
    ("recordings", re.compile(r"\b(?:videos?|audio)\b")),
    ("pictures", re.compile(r"image|picture|photo|screenshot|bild|imágen|图")),
)


def media_unit(line: str) -> MediaUnit:
    """Return the unit of the limit in this line."""
    for unit, words in _UNITS:
        if words.search(line):
            return unit
    return "documents"


def read_media_numbers(line: str) -> Numbers:
    """Read the limit on media, and how many the request has, out of the words of one line."""
    line = re.sub(
        r"\b(?:messages?|content|input|image|picture|item|index)(?:\.\d+| \d+(?= (?:is|has|exceeds))|\[\d+\])(?:[.\[]\S*)?|\bat index \d+",
        "#",
        _NO_SIZES.sub("#", line),
    )
    limit, span = _first_media(_MEDIA_LIMITS, line, (0, 0))
    added = _SUM.search(line)
    if added:
        return Numbers(limit, _number(added[1]) + _number(added[2]))
    wanted, _ = _first_media(_MEDIA_INPUTS, line, span)
    if limit is not None and wanted is not None and wanted <= limit:
        wanted = None
    return Numbers(limit, wanted)


def _first_media(
    patterns: tuple[str, ...], line: str, taken: tuple[int, int]
) -> tuple[int | None, tuple[int, int]]:
    """Return the first number that a pattern finds outside ``taken``, and where it stands."""
    for pattern in patterns:
        for match in compiled(pattern).finditer(line):
            if match.span(1) != taken:
                return _number(match[1], match[2]), match.span(1)
    return None, (0, 0)
