"""Characters of symbol fonts (Symbol, Wingdings 1 to 3, Webdings) as Unicode.

These fonts draw a tick where others draw "ü". Documents store the code, often moved to the
private-use area from U+F000 on (ECMA-376-1, section 17.3.3.30), which no reader can tell without
the font.
"""

# ruff: noqa: RUF001 - the characters of these fonts

import re
from functools import cache, lru_cache

# A row is 32 codes from 0x20 on; "¤" has no equivalent. The characters are those of Adobe's table
# for Symbol and of Unicode 7.0, which took in what Wingdings and Webdings draw. Of signs that few
# fonts and models know (a light check mark, U+1F5F8), the plain one stands here (U+2713).
_NONE = "¤"
_FONTS = {
    "symbol": (
        " !∀#∃%&∋()∗+,−./0123456789:;<=>?"
        "≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_"
        "‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼¤"
        "¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤"
        "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…|—↵"
        "ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓"
        "◊⟨®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪¤⟩∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭¤"
    ),
    "wingdings": (
        " 🖉✂✁👓🕭🕮🕯☎✆✉🖃📪📫📬📭🗀🗁🗎🗏🗐🗄⌛🖮🖱🖲🖳🖴🖫🖬✇✍"
        "🖎✌🖏👍👎☜☞☝☟🖐☺😐☹💣☠⚐⚑✈☼🌢❄🕆✞🕈✠✡☪☯🕉☸♈♉"
        "♊♋♌♍♎♏♐♑♒♓🙰🙵●❍■□□❑❒🞟⧫◆❖⬥⌧⮹⌘🏵🏶🙶🙷▯"
        "🄋➀➁➂➃➄➅➆➇➈➉🄌➊➋➌➍➎➏➐➑➒➓🙢🙠🙡🙣🙞🙜🙝🙟·•"
        "⬝⭘○🞈🞊🞋○▪□🟁✦★✶✴✹✵⯐⌖⯎⯏⯑✪✰🕐🕑🕒🕓🕔🕕🕖🕗🕘"
        "🕙🕚🕛⮰⮱⮲⮳⮴⮵⮶⮷🙪🙫🙕🙔🙗🙖🙐🙑🙒🙓⌫⌦←➢↑↓⮈⮊⮉⮋←"
        "→↑↓↖↗↙↘←➔↑↓↖↗↙↘⇦⇨⇧⇩⬄⇳⬁⬀⬃⬂🢬🢭✗✓☒☑¤"
    ),
    "wingdings2": (
        " 🖊🖋🖌🖍✄✀🕾🕽🗅🗆🗇🗈🗉🗊🗋🗌🗍📋🗑🗔🖵🖶🖷🖸🖭🖯🖱🖒🖓🖘🖙"
        "🖚🖛👈👉🖜🖝🖞🖟🖠🖡👆👇🖢🖣🖑✗✓☒☑☒☒⊗⊗🛇⦸🙱🙴🙲🙳‽🙹🙺"
        "🙻🙦🙤🙥🙧🙚🙘🙙🙛⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿¤"
        "☉🌕☽☾⸿✝🕇🕜🕝🕞🕟🕠🕡🕢🕣🕤🕥🕦🕧🙨🙩·🞄⦁●○○🞇🞉⊙⦿🞌"
        "🞍◾■□□□□🞔▣🞕🞖🞗🞘·⬥◇🞚◈🞛🞜🞝🞞⬪⬧◊🞠◖◗⯊⯋⯀⯁"
        "⬟⯂⬣⬢⯃⯄🞡🞢🞣🞤🞥🞦🞧🞨🞩🞪🞫🞬🞭🞮🞯🞰🞱🞲🞳🞴🞵🞶🞷🞸🞹🞺"
        "🞻🞼🞽🞾🞿🟀🟂🟄🟆🟉🟊✶🟌🟎🟐🟒✹🟃🟇✯🟍🟔⯌⯍※⁂¤¤¤¤¤¤"
    ),
    "wingdings3": (
        " ←→↑↓↖↗↙↘⭰⭲⭱⭳⭶⭸⭻⭽↔↕⭪⭬⭫⭭⭍⮠⮡⮢⮣⮤⮥⮦⮧"
        "⮐⮑⮒⮓⮀←⭾⭿⮄⮆⮅⮇⮏⮍⮎⮌⭮⭯⎋⌤⌃⌥␣⍽⇪⮸←→←→←→"
        "←→←→←→←→↑↓↖↗↙↘↔↕▲▼△▽◀▶◁▷◣◢◤◥🞀🞂🞁¤"
        "🞃⯅⯆⯇⯈←→↑↓🠐🠒🠑🠓🠔🠖🠕🠗🠘🠚🠙🠛🠜🠞🠝🠟🠀🠂🠁🠃🠄🠆🠅"
        "🠇🠈🠊🠉🠋🠠🠢🠤🠦🠨🠪🠬🢜🢝🢞🢟🠮🠰🠲←→←→↑↓🢘🢚🢙🢛←→↑"
        "↓←→↑↓←→↑↓⮨⮩⮪⮫⮬⮭⮮⮯←→↑↓↖↗↙↘←→↑↓↖↗↙"
        "↘←→↑↓↖↗↙↘←→↑↓🢔🢖🢕🢗¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤"
    ),
    "webdings": (
        " 🕷🕸🕲🕶🏆🎖🖇🗨🗩🗰🗱🌶🎗🙾🙼🗕🗖🗗⏴⏵⏶⏷⏪⏩⏮⏭⏸⏹⏺🗚🗳"
        "🛠🏗🏘🏙🏚🏜🏭🏛🏠🏖🏝🛣🔍🏔👁👂🏞🏕🛤🏟🛳🕬🕫🕨🔈🎔🎕🗬🙽🗭🗪🗫"
        "⮔✔🚲⬜🛡📦🛱⬛🚑ℹ🛩🛰🟈🕴⬤🛥🚔🗘✗❓🛲🚇🚍⛳⦸⊖🚭🗮⏐🗯🗲¤"
        "🚹🚺🛉🛊🚼👽🏋⛷🏂🏌🏊🏄🏍🏎🚘🗠🛢💰🏷💳👪🗡🗢🗣✯🖄🖅🖃🖆🖹🖺🖻"
        "🕵🕰🖽🖾📋🗒🗓🕮📚🗞🗟🗃🗂🖼🎭🎜🎘🎙🎧💿🎞📷🎟🎬📽📹📾📻🎚🎛📺💻"
        "🖥🖦🖧🕹🎮🕻🕼📟🖁🖀🖨🖩🖿🖪🗜🔒🔓🗝📥📤🕳🌣🌤🌥🌦☁🌨🌧🌩🌪🌬🌫"
        "🌜🌡🛋🛏🍽🍸🛎🛍Ⓟ♿🛆🖈🎓🗤🗥🗦🗧🛪🐿🐦🐟🐕🐈🙬🙮🙭🙯🗺🌍🌏🌎🕊"
    ),
}
_NAMES = re.compile(r"(symbol|wingdings[23]?|webdings)(?:mt|regular|std)?")
_PLAIN = re.compile(r"[\s_-]+")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
# A sign by itself: PowerPoint stores the arrow that replaces "-->" as "à" (U+00E0 in Wingdings).
_LONE = re.compile(r"(?<!\w)[\xa1-\xff\uf020-\uf0ff](?!\w)")
# Bullets that say something about their item; all others only show that it is one.
_TELLING = frozenset("✓✔✗✘☑☒☐□👍👎☺☹😐⚠")


def is_symbol_font(name: str) -> bool:
    """Return whether a font draws symbols in the place of letters."""
    return bool(_table(name))


def seen(text: str, font: str = "") -> str:
    """Return ``text`` as it looks in ``font``.

    What has no equivalent becomes ``[symbol F0A7]``, and so does a code of an unknown symbol font.
    """
    table = _table(font) if font else None
    return text.translate(table) if table else without_private(text)


def seen_lone(text: str, font: str) -> str:
    """Return ``text`` with those characters in ``font`` that stand by themselves."""
    return without_private(_LONE.sub(lambda sign: seen(sign[0], font), text))


def without_private(text: str) -> str:
    """Return ``text`` with private-use characters, codes of an unknown font, by number."""
    if text.isascii():
        return text
    return _PRIVATE.sub(lambda sign: _numbered(ord(sign[0])), text)


def telling_bullet(text: str, font: str) -> str:
    """Return a bullet that says something about its item (a tick, a cross, a box), else ""."""
    sign = seen(text, font).strip()
    return sign if sign in _TELLING else ""


def _numbered(code: int) -> str:
    return f"[symbol {code:04X}]"


@cache
def _tables() -> dict[str, dict[int, str]]:
    tables: dict[str, dict[int, str]] = {}
    for name, signs in _FONTS.items():
        table = tables[name] = {}
        for code, sign in enumerate(signs, start=0x20):
            table[0xF000 + code] = sign if sign != _NONE else _numbered(0xF000 + code)
            # In Unicode text these are controls and the space that does not break.
            if not 0x7F <= code <= 0xA0:
                table[code] = table[0xF000 + code]
    return tables


@lru_cache(maxsize=1_024)  # each run names its font
def _table(font: str) -> dict[int, str] | None:
    name = _NAMES.fullmatch(_PLAIN.sub("", font.strip("\"' ").casefold()[:40]))
    return _tables()[name[1]] if name else None
