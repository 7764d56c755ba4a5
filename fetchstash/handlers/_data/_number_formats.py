"""Numbers as a person sees them: the format codes of cells (ECMA-376-1, section 18.8.31).

A workbook keeps 0.256 and the code "0.0%". Dates whose code puts day and month in an order that
another country reads the other way (3/4/2026) stay in ISO 8601.
"""

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache, partial

Cell = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta
Formatter = Callable[[Cell], str | None]
"""Returns the text of a value, None if its format has nothing to say about it."""
_Writer = Callable[[dt.datetime], str]

# The codes that a workbook need not write (section 18.8.30). 14 to 17 and 22 follow the system of
# whoever looks; 14 and 22 stay in ISO 8601.
BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "$#,##0;-$#,##0", 6: "$#,##0;-$#,##0",
    7: "$#,##0.00;-$#,##0.00", 8: "$#,##0.00;-$#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00",
    12: "# ?/?", 13: "# ??/??", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)", 41: "#,##0;(#,##0);-",
    42: "$#,##0;($#,##0);-", 43: "#,##0.00;(#,##0.00);-", 44: "$#,##0.00;($#,##0.00);-",
    45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0",
}  # fmt: skip
_MAX_CODE = 255  # Excel takes no longer ones
_TOKEN = re.compile(
    r"""
      "(?P<quoted>[^"]*)"? | \\(?P<escaped>.) | [_*](?P<filler>.)
    | \[\$(?P<currency>[^\]-]*)(?:-[^\]]*)?\]
    | \[(?P<elapsed>h+|m+|s+)\]
    | \[(?P<condition>[<>=]{1,2})\s*(?P<bound>-?[\d.]+(?:E[+-]?\d+)?)\]
    | \[[^\]]*\]
    | (?P<half>AM/PM|A/P|上午/下午)
    | (?P<general>General|Standard)
    | (?P<exponent>E[+-])
    | (?P<date>y+|m+|d+|h+|s+(?:\.0+)?|e+|b+|g+)
    | (?P<digit>[0\#?])
    | (?P<other>.)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_EPOCH = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - cells know no zone
_DAY = dt.timedelta(days=1)
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda value, bound: value < bound,
    ">": lambda value, bound: value > bound,
    "=": lambda value, bound: value == bound,
    "<=": lambda value, bound: value <= bound,
    ">=": lambda value, bound: value >= bound,
    "<>": lambda value, bound: value != bound,
}


def general(value: float) -> str:
    """Return a number as a cell without a format shows it, to 15 digits."""
    return f"{value + 0.0:.15g}"  # and -0 as 0


@lru_cache(maxsize=4_096)
def formatter(code: str) -> Formatter | None:
    """Return the formatter of a format code, None if it shows values as they are."""
    code = code[:_MAX_CODE]
    if code.strip().lower() in {"", "general", "standard", "@"}:
        return None
    sections = [_Section(tokens) for tokens in _sections(code)]
    if any(section.is_date for section in sections):
        dates = next(section for section in sections if section.is_date)
        return None if dates.is_ambiguous else dates.date

    chosen = _chooser(sections)

    def write(value: Cell) -> str | None:
        if (type(value) is not float and type(value) is not int) or not math.isfinite(value):
            return None
        return chosen(value).strip() or None

    return write


def is_ambiguous_date(text: str) -> bool:
    """Return whether a date may be read with day and month exchanged."""
    return re.match(r"\d{1,2}[/-]\d{1,2}[/-]\d{2,4}\b", text) is not None


Token = tuple[str, str]
"""The kind of a token, and its text."""


def _sections(code: str) -> list[list[Token]]:
    sections: list[list[Token]] = [[]]
    for match in _TOKEN.finditer(code):
        kind = match.lastgroup or ""
        if kind == "bound":
            sections[-1].append(("condition", f"{match['condition']} {match['bound']}"))
        elif kind == "other" and match[0] == ";":
            sections.append([])
        elif kind in {"quoted", "escaped", "currency"}:
            sections[-1].append(("text", match[kind]))
        elif kind == "other" and match[0] not in ".,%/@":
            sections[-1].append(("text", match[0]))
        elif kind not in {"", "filler"}:
            sections[-1].append((kind, match[kind]))
    return sections[:4]


def _chooser(sections: Sequence["_Section"]) -> Callable[[float], str]:
    """Return a function that writes a number by the section of the code that applies to it."""
    numeric = sections[:3]
    if any(section.holds for section in numeric):

        def by_condition(value: float) -> str:
            for section in numeric:
                if section.holds is None or section.holds(value):
                    return section.number(value)
            return numeric[-1].number(value)

        return by_condition
    # The second and the third section are for what is below 0 and for 0; the sign is theirs.
    if len(numeric) == 1:
        return numeric[0].number
    above, below, zero = (section.number for section in (*numeric, numeric[0])[:3])
    return lambda value: above(value) if value > 0 else below(-value) if value < 0 else zero(value)


class _Section:
    """A section of a format code."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = [token for token in tokens if token[0] != "condition"]
        kinds = [kind for kind, _ in self._tokens]
        self.holds: Callable[[float], bool] | None = None
        for kind, text in tokens:
            if kind == "condition":
                sign, bound = text.split(" ")
                test, limit = _OPERATORS.get(sign, _OPERATORS["="]), float(bound)
                self.holds = lambda value, test=test, limit=limit: test(value, limit)
        self.is_general = "general" in kinds
        self.is_date = not self.is_general and bool({"date", "elapsed"} & set(kinds))
        self.number = general if self.is_date else self._compiled()

    @property
    def is_ambiguous(self) -> bool:
        """Whether the code writes day and month as numbers, and the year not before them."""
        parts = [text.lower() for kind, text in self._tokens if kind == "date"]
        order = "".join(part[0] for part in parts if part[0] in "ymd")
        short = [part for part in parts if part in {"m", "mm", "d", "dd"}]
        separators = {text for kind, text in self._tokens if kind in {"text", "other"}}
        numeric = "d" in order and "m" in order and any(p[0] == "d" for p in short)
        months = [p for p in parts if p[0] == "m" and len(p) > 2]
        return numeric and not months and not order.startswith("y") and "." not in separators

    def date(self, value: Cell) -> str | None:
        """Return a date, a time or a duration as this section writes it."""
        moment = _moment(value)
        if moment is None:
            return None
        if moment.microsecond:
            moment = _EPOCH + round((moment - _EPOCH) / self._step) * self._step
        template, writers = self._date_parts
        return template.format(moment, *[write(moment) for write in writers]).strip()

    @cached_property
    def _step(self) -> dt.timedelta:
        """The smallest unit of time that the code shows."""
        for kind, text in self._tokens:
            if kind == "date" and "." in text:
                digits = min(len(text.partition(".")[2]), 6)  # a microsecond at the least
                return dt.timedelta(seconds=10**-digits)
        return dt.timedelta(seconds=1)

    @cached_property
    def _date_parts(self) -> tuple[str, list[_Writer]]:
        """A template for a moment, and functions that write what it has no field for.

        Both are made once: thousands of cells share a code.
        """
        has_half = any(kind == "half" for kind, _ in self._tokens)
        template = ""
        writers: list[_Writer] = []
        after_hour = False
        for place, (kind, text) in enumerate(self._tokens):
            lower = text.lower()
            part: str | _Writer = ""
            if kind == "elapsed":
                part = partial(_elapsed, unit=lower[0], size=len(text))
                after_hour = lower[0] == "h"
            elif kind == "date":
                is_short_month = lower[0] == "m" and len(text) < 3
                if is_short_month and (after_hour or self._before_second(place)):
                    part = _padded_field("minute", text)
                else:
                    part = _field(lower, has_half=has_half)
                after_hour = lower[0] == "h"
            elif kind == "half":
                morning, _, evening = text.partition("/")
                part = partial(_half, morning=morning, evening=evening)
            elif kind != "digit" and text != "@":
                part = text.replace("{", "{{").replace("}", "}}")
            if not isinstance(part, str):
                writers.append(part)
                part = f"{{{len(writers)}}}"
            template += part
        return template, writers

    def _before_second(self, place: int) -> bool:
        later = (t for k, t in self._tokens[place + 1 :] if k in {"date", "elapsed"})
        return next(later, "").lower().startswith("s")

    def _compiled(self) -> Callable[[float], str]:
        """Return a function that writes a number; most codes are a prefix, digits and a suffix."""
        tokens = self._tokens
        scale = 100.0 ** sum(token == ("other", "%") for token in tokens)
        places = [n for n, (kind, _) in enumerate(tokens) if kind == "digit"]
        if not places:
            return self._without_digits(tokens)
        kinds = [kind for kind, _ in tokens]
        first, last = places[0], places[-1]
        before = _literal(tokens[:first])
        middle, after = tokens[first : last + 1], tokens[last + 1 :]
        commas = 0
        while after and after[0] == ("other", ","):
            after, commas = after[1:], commas + 1
        scale /= 1_000.0**commas
        tail = _literal(after)
        if "exponent" in kinds:
            return _scientific(middle, before, tail, scale)
        if ("other", "/") in middle or (after and after[0] == ("other", "/")):
            return _fraction(tokens[first:], before, scale)
        return _decimal(middle, before, tail, scale)

    def _without_digits(self, tokens: Sequence[Token]) -> Callable[[float], str]:
        before: list[str] = []
        for kind, text in tokens:
            before.append("\0" if kind == "general" else "" if text == "@" else text)
        template = "".join(before)
        return lambda value: template.replace("\0", general(value))


def _literal(tokens: Sequence[Token]) -> str:
    return "".join(text for kind, text in tokens if kind != "exponent" and text != "@")


# 2.675 is stored as a little less, and shown as 2.68: this moves a number by its last bit.
_NUDGE = 1 + 3e-16


def _decimal(
    middle: Sequence[Token], before: str, after: str, scale: float
) -> Callable[[float], str]:
    at = next((n for n, token in enumerate(middle) if token == ("other", ".")), len(middle))
    whole, part = middle[:at], middle[at + 1 :]
    grouped = ("other", ",") in whole
    pattern = "".join(text for kind, text in part if kind == "digit")
    least = sum(token == ("digit", "0") for token in whole)
    optional = len(pattern) - len(pattern.rstrip("#?"))
    spec = f"{',' if grouped else ''}.{len(pattern)}f"
    has_point = at < len(middle)
    inner = any(kind == "text" for kind, _ in middle)

    factor = scale * _NUDGE
    if least == 1 and not optional and not inner and has_point == bool(pattern):

        def write_plain(value: float) -> str:
            digits = format(value * factor, spec)
            if value < 0:
                sign = "-" if digits.strip("-0.,") else ""
                return f"{sign}{before}{digits[1:]}{after}"
            return f"{before}{digits}{after}"

        return write_plain

    def write(value: float) -> str:
        digits = format(abs(value) * factor, spec)
        sign = "-" if value < 0 and any("1" <= c <= "9" for c in digits) else ""
        if optional and pattern:
            kept = len(digits) - optional
            digits = digits[:kept] + digits[kept:].rstrip("0")
        if not has_point and "." in digits:
            digits = digits.rstrip(".")
        if least == 0 and digits.startswith("0") and digits[1:2] == ".":
            digits = digits[1:]
        elif least == 0 and digits == "0":
            digits = ""
        elif least > 1:
            digits = _padded(digits, least, grouped=grouped)
        if inner:
            digits = _woven(middle, digits)
        return f"{sign}{before}{digits}{after}"

    return write


def _padded(digits: str, least: int, *, grouped: bool) -> str:
    whole, point, part = digits.partition(".")
    plain = whole.replace(",", "").rjust(least, "0")
    return (
        (f"{int(plain):0{len(plain) + (len(plain) - 1) // 3},d}" if grouped else plain)
        + point
        + part
    )


def _woven(middle: Sequence[Token], digits: str) -> str:
    """Return digits with the texts that stand among them, as in a telephone number."""
    whole, point, part = digits.replace(",", "").partition(".")
    left, behind = list(whole), list(part)
    at = next((n for n, token in enumerate(middle) if token == ("other", ".")), len(middle))
    written: list[str] = []
    for kind, text in reversed(middle[:at]):
        if kind == "digit":
            written.append(left.pop() if left else "")
        elif kind == "text":
            written.append(text)
    woven = "".join(left) + "".join(reversed(written)) + point
    for kind, text in middle[at + 1 :]:
        woven += (behind.pop(0) if behind else "") if kind == "digit" else text
    return woven


def _scientific(
    middle: Sequence[Token], before: str, after: str, scale: float
) -> Callable[[float], str]:
    at = next(n for n, (kind, _) in enumerate(middle) if kind == "exponent")
    mantissa, power = middle[:at], middle[at + 1 :]
    plus = "+" if middle[at][1].endswith("+") else ""
    dot = next((n for n, token in enumerate(mantissa) if token == ("other", ".")), len(mantissa))
    decimals = sum(kind == "digit" for kind, _ in mantissa[dot:])
    step = max(sum(kind == "digit" for kind, _ in mantissa[:dot]), 1)
    width = max(sum(kind == "digit" for kind, _ in power), 1)

    def write(value: float) -> str:
        scaled = abs(value) * scale * _NUDGE
        exponent = int(f"{scaled:.{decimals + step - 1}e}".partition("e")[2]) if scaled else 0
        exponent -= exponent % step
        digits = f"{scaled / 10.0**exponent:.{decimals}f}"
        sign = "-" if value < 0 else ""
        mark = "-" if exponent < 0 else plus
        return f"{sign}{before}{digits}E{mark}{abs(exponent):0{width}d}{after}"

    return write


def _fraction(tokens: Sequence[Token], before: str, scale: float) -> Callable[[float], str]:
    slash = next(n for n, token in enumerate(tokens) if token == ("other", "/"))
    above = [n for n in range(slash) if tokens[n][0] == "digit"]
    gaps = [n for n in range(slash) if tokens[n][0] == "text"]
    has_whole = bool(gaps) and any(n < gaps[-1] for n in above)
    below = tokens[slash + 1 :]
    fixed = "".join(text for kind, text in below if kind in {"text", "digit"} and text.isdecimal())
    places = sum(kind == "digit" for kind, _ in below)
    denominator = int(fixed) if fixed.strip("0") and len(fixed) < 6 else 0
    most = 10 ** min(max(places, 1), 4) - 1

    def write(value: float) -> str:
        scaled = abs(value) * scale
        whole = int(scaled) if has_whole else 0
        rest = scaled - whole
        if denominator:
            count, parts = math.floor(rest * denominator + 0.5), denominator
        else:
            near = Fraction(rest).limit_denominator(most)
            count, parts = near.numerator, near.denominator
        if has_whole and count == parts:
            whole, count = whole + 1, 0
        sign = "-" if value < 0 and (whole or count) else ""
        if has_whole and not count:
            return f"{sign}{before}{whole}"
        shown = f"{count}/{parts}"
        return f"{sign}{before}{f'{whole} ' if whole else ''}{shown}"

    return write


def _moment(value: Cell) -> dt.datetime | None:
    """Return a date, a time, a duration or a serial number as a moment since the epoch."""
    try:
        match value:
            case bool() | str():
                return None
            case dt.datetime():
                return value.replace(tzinfo=None)
            case dt.date():
                return dt.datetime.combine(value, dt.time())
            case dt.time():
                return dt.datetime.combine(_EPOCH.date(), value)
            case dt.timedelta():
                return _EPOCH + value
            case _:
                return _EPOCH + value * _DAY
    except (OverflowError, ValueError):
        return None


def _elapsed(moment: dt.datetime, unit: str, size: int) -> str:
    seconds = {"h": 3_600, "m": 60, "s": 1}[unit]
    return f"{int((moment - _EPOCH).total_seconds() // seconds):0{size}d}"


def _half(moment: dt.datetime, morning: str, evening: str) -> str:
    return evening if moment.hour >= 12 else morning


def _padded_field(name: str, token: str) -> str:
    return f"{{0.{name}:0{min(len(token), 2)}d}}"


def _field(token: str, *, has_half: bool) -> str | _Writer:
    """Return the template field for a part of a date, or a function that writes it."""
    size = len(token)
    match token[0]:
        case "y" | "e":
            return "{0:%y}" if token in {"y", "yy"} else "{0.year}"
        case "m" if size == 5:
            return lambda moment: f"{moment:%B}"[0]
        case "m" if size >= 3:
            return "{0:%B}" if size == 4 else "{0:%b}"
        case "m":
            return _padded_field("month", token)
        case "d" if size >= 3:
            return "{0:%A}" if size > 3 else "{0:%a}"
        case "d":
            return _padded_field("day", token)
        case "h" if has_half:
            return "{0:%I}" if size > 1 else lambda moment: str(moment.hour % 12 or 12)
        case "h":
            return _padded_field("hour", token)
        case "s" if "." in token:
            seconds, _, digits = token.partition(".")
            spec, end = f"0{min(len(seconds), 2)}d", len(digits) + 1
            return lambda m: f"{m.second:{spec}}{f'.{m.microsecond:06d}'[:end]}"
        case "s":
            return _padded_field("second", token)
        case _:
            return ""
