"""Read dates as people and machines write them: ISO 8601, mail's, and words of many languages."""

import re
from collections.abc import Iterator
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import NamedTuple

# Names and usual abbreviations (without their dots) of each month, in 35 languages. Listopad is
# left out: it is October or November.
_MONTHS = """
january jan januar jänner janvier janv enero ene janeiro gennaio gen januari tammikuuta tammikuu
stycznia styczeń sty ledna leden января январь янв січня січень ocak ianuarie január ιανουαρίου
janvāris janvāra janvārī sausio يناير ינואר जनवरी siječnja januára januara januarja јануара gener
jaanuar มกราคม ;
february feb februar feber février févr fév febrero fevereiro fev febbraio februari helmikuuta
helmikuu lutego luty lut února únor февраля февраль фев лютого лютий şubat februarie február
φεβρουαρίου februāris februāra februārī vasario فبراير פברואר फरवरी फ़रवरी veljače februára
februara februarja фебруара febrer veebruar กุมภาพันธ์ ;
march mar märz mär mrz mars marzo março maart mrt marts maaliskuuta maaliskuu marca marzec března
březen марта март мар березня березень mart martie március μαρτίου maret marta martā kovo مارس מרץ
मार्च ožujka març märts มีนาคม ;
april apr avril avr abril abr aprile huhtikuuta huhtikuu kwietnia kwiecień kwi dubna duben апреля
апрель апр квітня квітень nisan aprilie április απριλίου aprīlis aprīļa aprīlī balandžio أبريل
ابريل אפריל अप्रैल travnja apríla aprila априла aprill เมษายน ;
may mai mayo maio maggio mag mei maj toukokuuta toukokuu maja května květen мая май травня травень
mayıs május μαΐου μαίου maijs maija maijā gegužės مايو מאי मई svibnja mája маја maig พฤษภาคม ;
june jun juni juin junio junho giugno giu kesäkuuta kesäkuu czerwca czerwiec cze června červen
июня июнь июн червня червень haziran iunie június ιουνίου jūnijs jūnija jūnijā birželio يونيو יוני
जून lipnja júna juna junija јуна juny juuni มิถุนายน ;
july jul juli juillet juil julio julho luglio lug heinäkuuta heinäkuu lipca lipiec lip července
červenec июля июль июл липня липень temmuz iulie július ιουλίου jūlijs jūlija jūlijā liepos يوليو
יולי जुलाई srpnja júla jula julija јула juliol juuli กรกฎาคม ;
august aug août agosto ago augustus augusti elokuuta elokuu sierpnia sierpień sie srpna srpen
августа август авг серпня серпень ağustos augusztus αυγούστου agustus augusts augusta augustā
rugpjūčio أغسطس اغسطس אוגוסט अगस्त kolovoza avgusta agost สิงหาคม ;
september sep sept septembre septiembre setiembre setembro set settembre syyskuuta syyskuu
września wrzesień wrz září сентября сентябрь сен сент вересня вересень eylül septembrie szeptember
σεπτεμβρίου septembris septembra septembrī rugsėjo سبتمبر ספטמבר सितंबर सितम्बर rujna setembre
กันยายน ;
october oct oktober okt octobre octubre outubro out ottobre ott lokakuuta lokakuu października
październik paź října říjen октября октябрь окт жовтня жовтень ekim octombrie október οκτωβρίου
oktobris oktobra oktobrī spalio أكتوبر اكتوبر אוקטובר अक्टूबर अक्तूबर októbra октобра ตุลาคม ;
november nov novembre noviembre novembro marraskuuta marraskuu listopada listopad lis ноября
ноябрь ноя листопада листопад kasım noiembrie νοεμβρίου novembris novembra novembrī lapkričio
نوفمبر נובמבר नवंबर नवम्बर studenoga studenog новембра พฤศจิกายน ;
december dec dezember dez décembre déc diciembre dic dezembro dicembre desember des joulukuuta
joulukuu grudnia grudzień gru prosince prosinec декабря декабрь дек грудня грудень aralık
decembrie δεκεμβρίου decembris decembra decembrī gruodžio ديسمبر דצמבר दिसंबर दिसम्बर prosinca
децембра desembre ธันวาคม
"""
FIRST_YEAR = 1990
"""Of a date in words: older ones on a web page are what it tells of."""

_ISO = re.compile(
    r"(?<![\w.-])(\d{4})([-/])(\d\d?)\2(\d\d?)(?![-.]?[^\W_T])"
    r"(?:(?:[T ]|, )(\d\d:\d\d(?::\d\d)?)(?:[.,]\d{1,9})?\s?(Z|[+-]\d\d:?\d\d)?)?"
)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T?(?:\d{4}|\d{6}))?Z?$", re.ASCII)
# "26. Februar 2025", "26 de febrero de 2025", "26th of February, 2025", "Feb. 26, 2025"
_NAME = r"([^\W\d_](?:[^\W\d_]|[\u0900-\u097f\u0e31-\u0e4e\u0301]){1,15})\.?"
_BY_DAY = re.compile(
    rf"(?<![\d.:/])(\d\d?)(?:st|nd|rd|th|er|º|ª|°|-го|\.)?,?\s+(?:(?:de|d['’]|of|di)\s+)?"
    rf"{_NAME},?\s+(?:(?:de|del|of)\s+)?(\d{{4}})(?![\d:])",
    re.IGNORECASE,
)
_BY_MONTH = re.compile(
    rf"(?<!\w){_NAME}\s+(\d\d?)(?:st|nd|rd|th)?\.?,?\s+(?:at\s+)?(\d{{4}})(?![\d:])", re.IGNORECASE
)
_BY_YEAR = re.compile(rf"(?<!\d)(\d{{4}})\.?\s*(?:m\.?|gada|г\.)?\s+{_NAME}\s+(\d\d?)\.?(?![\d:])")
_EAST_ASIAN = re.compile(r"(\d{4})\s?[年년]\s?(\d\d?)\s?[月월]\s?(\d\d?)\s?[日일号號]?")
_LATVIAN = re.compile(rf"(?<!\d)(\d{{4}})\.\s*gada\s+(\d\d?)\.\s*{_NAME}", re.IGNORECASE)
_VIETNAMESE = re.compile(
    r"(?<!\d)(\d\d?)\s+tháng\s+(\d\d?)(?:\s+năm|,)?\s+(\d{4})(?![\d:])", re.IGNORECASE
)
_BUDDHIST = 543  # years that the calendar of Thailand is ahead
_NUMERIC = re.compile(r"(?<![\d./-])(\d\d?)([./-])\s?(\d\d?)\2\s?(\d{4})(?![\d./-])")
_YEAR_FIRST = re.compile(r"(?<![\d./-])(\d{4})([./])\s?(\d\d?)\2\s?(\d\d?)(?![\d/-])")


@cache
def _months() -> dict[str, int]:
    """Return the number of the month of each name."""
    return {
        name: number for number, names in enumerate(_MONTHS.split(";"), 1) for name in names.split()
    }


class Found(NamedTuple):
    """A date in a text: its ISO form, and where it stands."""

    iso: str
    start: int
    end: int


def moment(value: str, language: str = "") -> str:
    """Return the date, or the time, that a value of metadata states, in ISO 8601; "" if none."""
    value = value.strip()[:100]
    if match := _ISO.search(value):
        return _iso_moment(match)
    if match := _COMPACT.match(value):
        return _checked(match[1], match[2], match[3], first=1600)
    if value[:3].isalpha() and ":" in value:  # RFC 5322: Wed, 04 Mar 2026 10:00:00 GMT
        try:
            return parsedate_to_datetime(value).isoformat()
        except (ValueError, TypeError, OverflowError, IndexError):
            pass
    return next((found.iso for found in dates(value, language)), "")


def _iso_moment(match: re.Match[str]) -> str:
    day = _checked(match[1], match[3], match[4], first=1600)
    if not day or not match[5]:
        return day
    return f"{day}T{match[5]}{match[6] or ''}"


def dates(text: str, language: str = "") -> list[Found]:
    """Return the dates in a text that name day, month and year, in order.

    ``language`` is the page's (BCP 47). It decides which of two small numbers is the day; where
    it does not, such a date is left out.
    """
    if not any(map(str.isdigit, text)):
        return []
    found = sorted(_found(text, language), key=lambda date: date.start)
    kept: list[Found] = []
    for one in found:
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def _found(text: str, language: str) -> Iterator[Found]:
    months = _months()
    for match in _ISO.finditer(text):
        if _checked(match[1], match[3], match[4]):
            yield Found(_iso_moment(match), *match.span())
    for pattern, order in (
        (_BY_DAY, (3, 2, 1)),
        (_BY_MONTH, (3, 1, 2)),
        (_BY_YEAR, (1, 2, 3)),
        (_LATVIAN, (1, 3, 2)),
    ):
        for match in pattern.finditer(text):
            year, name, day = (match[group] for group in order)
            name = name.lower().removeprefix("ב")  # "on", written with the name in Hebrew
            number = months.get(name)
            if name == "listopada" and language[:2].lower() == "hr":
                number = 10
            if "\u0e00" <= name[0] <= "\u0e7f":
                year = str(int(year) - _BUDDHIST)
            if number and (iso := _checked(year, str(number), day)):
                yield Found(iso, *match.span())
    for match in _EAST_ASIAN.finditer(text):
        if iso := _checked(match[1], match[2], match[3]):
            yield Found(iso, *match.span())
    for match in _VIETNAMESE.finditer(text):
        if iso := _checked(match[3], match[2], match[1]):
            yield Found(iso, *match.span())
    for match in _YEAR_FIRST.finditer(text):
        if iso := _checked(match[1], match[3], match[4]):
            yield Found(iso, *match.span())
    for match in _NUMERIC.finditer(text):
        if iso := _by_numbers(match, language.lower()):
            yield Found(iso, *match.span())


def _by_numbers(match: re.Match[str], language: str) -> str:
    first, separator, second, year = match.groups()
    day_first, month_first = _checked(year, second, first), _checked(year, first, second)
    if not day_first or not month_first or first == second:
        return day_first or month_first
    if separator == "." or (language and language[:2] != "en") or language in _DAY_FIRST:
        return day_first
    return month_first if language == "en-us" else ""


_DAY_FIRST = frozenset(("en-gb", "en-au", "en-nz", "en-ie", "en-in", "en-za"))


def _checked(year: str, month: str, day: str, first: int = FIRST_YEAR) -> str:
    """Return a date in ISO 8601 if it may be that of a document, else ""."""
    try:
        checked = date(int(year), int(month), int(day))
    except ValueError:
        return ""
    is_past = first <= checked.year <= datetime.now().astimezone().year + 1
    # The beginning of Unix time is what programs write where they know none.
    return checked.isoformat() if is_past and (checked.year, checked.month) != (1970, 1) else ""
