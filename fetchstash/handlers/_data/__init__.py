"""Data: JSON, YAML, XML, tables, workbooks and databases."""

from collections.abc import Iterator
from dataclasses import replace
from enum import unique

from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.handlers._binary import UnreadHandler
from fetchstash.handlers._contract import Format, family
from fetchstash.handlers._reasons import FETCH_AGAIN, KEPT, READ_LINES, THERE_INSIDE, ReasonTable
from fetchstash.handlers._routing._structure import sniff_csv, sniff_json, sniff_xml, sniff_yaml


@unique
class DataReason(ReasonTable):
    """Why data are not read."""

    NOT_IN_OBJECT = (
        "There is nothing at {name}: the object before it has {count:,} other keys.",
        THERE_INSIDE,
        OutOfRange,
    )
    NOT_IN_ARRAY = (
        "There is nothing at {name}: the array before it has {count:,} items, counted from 0.",
        THERE_INSIDE,
        OutOfRange,
    )
    NOT_IN_VALUE = (
        "There is nothing at {name}: the value before it is no object or array.",
        THERE_INSIDE,
        OutOfRange,
    )
    BAD_JSONPATH = (
        "{name} is no JSONPath of RFC 9535.",
        "Correct it, or give a JSON pointer such as /items/0/name.",
        BadArgument,
    )
    BAD_XPATH = (
        "{name} is no path to elements.",
        "Write it as in /catalog/book[2]/title or //book/@id.",
        BadArgument,
    )
    NO_COLUMN = (
        "There is no column {name}.",
        "Take names of the header or numbers from 1 to {count}, separated by commas.",
        OutOfRange,
    )
    BAD_JSON = "This is not valid JSON, so it has no paths.", READ_LINES
    BAD_YAML = "This is not valid YAML, so it has no paths.", READ_LINES
    BAD_TOML = "This is not valid TOML, so it has no paths.", READ_LINES
    YAML_ALIASES = (
        "Its aliases expand to more than {limit:,} values, so it has no paths.", READ_LINES,
    )  # fmt: skip
    YAML_DEPTH = "It is nested deeper than {limit}, so it has no paths.", READ_LINES
    YAML_ANCHOR = "One of its anchors is missing or holds itself, so it has no paths.", READ_LINES
    INI_VALUES = (
        "INI has sections, and no values that are read by path.", "Take a section of its outline.",
    )  # fmt: skip
    LARGE_FOR_VALUES = "Values are read by path up to {limit:,} bytes.", READ_LINES
    LARGE_FOR_ELEMENTS = "Elements are found by path up to {limit:,} bytes.", READ_LINES
    SHEETS_DAMAGED = "the spreadsheet is damaged, cut short or encrypted", KEPT
    SHEETS_ENCRYPTED = "the spreadsheet is encrypted and opens only with its password", KEPT
    SHEETS_EMPTY = "the spreadsheet holds no value", KEPT
    SHEETS_NO_FORMULA = (
        "There are no formulas at {name}.",
        'Take "formulas", or "formulas/" and the name of a sheet of an XLSX.',
        OutOfRange,
    )
    SHEET_DAMAGED = "a sheet of it is damaged: what follows is missing", KEPT
    SHEET_ROW = "it has a cell behind the last of a sheet, XFD{limit}", KEPT
    SHEET_SPAN = (
        "its cells lie too far apart: a sheet spans {cells:,} cells, and {limit:,} are read", KEPT,
    )  # fmt: skip
    DATABASE_DAMAGED = "the database is damaged or cut short", FETCH_AGAIN
    DATABASE_EMPTY = "the database has no tables", KEPT
    SVG_LARGE = "the drawing is larger than {limit:,} bytes", READ_LINES


_HERE = "fetchstash.handlers._data."
_VALUES = ("/*", "$*")  # a JSON Pointer (RFC 6901) or a JSONPath (RFC 9535)
_OOXML = "application/vnd.openxmlformats-officedocument.spreadsheetml."
_ODS = "application/vnd.oasis.opendocument.spreadsheet"
_EXCEL = "application/vnd.ms-excel"
_PACKAGE = "[Content_Types].xml"


def _formats() -> Iterator[Format]:
    json = Format(
        kind="json",
        word="JSON",
        handler=_HERE + "_json:JsonHandler",
        media_types=(),
        is_text=True,
        paths=_VALUES,
    )
    yield from family(
        replace(json, sniff=sniff_json),
        ("JSON", "application/json text/json text/x-json", "json har map"),
    )
    yield from family(
        json,
        ("JSON", "application/geo+json", "geojson"),
        ("JSON", "application/manifest+json", "webmanifest"),
        ("JSON", "application/ld+json", "jsonld"),
        ("JSON", "*+json", ""),
    )
    yield from family(
        replace(json, kind="jsonl", handler=_HERE + "_json:JsonLinesHandler"),
        ("JSON Lines", "application/jsonl application/jsonlines application/x-jsonlines", "jsonl"),
        ("JSON Lines", "application/x-ndjson application/ndjson", "ndjson"),
        ("JSON Lines", "application/json-seq *+json-seq", ""),
    )
    yaml = replace(json, kind="yaml", handler=_HERE + "_yaml:YamlHandler")
    yield from family(
        replace(yaml, sniff=sniff_yaml),
        ("YAML", "application/yaml application/x-yaml text/yaml text/x-yaml *+yaml", "yaml yml"),
    )
    yield from family(replace(yaml, kind="text"), ("TOML", "application/toml", "toml"))
    yield from family(replace(yaml, kind="text", paths=()), ("text", "text/x-ini", "ini cfg"))
    xml = Format(
        kind="xml",
        word="XML",
        handler=_HERE + "_xml:XmlHandler",
        media_types=(),
        is_text=True,
        paths=("/*",),
    )
    yield from family(
        replace(xml, sniff=sniff_xml),
        ("XML", "application/xml text/xml application/xml-dtd *+xml", "xml xsd xsl xslt plist"),
    )
    yield from family(
        xml,
        ("XML", "application/rdf+xml", "rdf"),
        ("XML", "application/vnd.google-earth.kml+xml", "kml"),
        ("XML", "application/gpx+xml", "gpx"),
    )
    yield from family(
        replace(
            xml,
            kind="image",
            handler=_HERE + "_xml:SvgHandler",
            is_text=False,
            is_markup=True,
            pictures=True,
        ),
        ("SVG image", "image/svg+xml", "svg"),
    )
    yield from family(
        replace(xml, handler=_HERE + "_feeds:FeedHandler"),
        ("RSS feed", "application/rss+xml", "rss"),
        ("Atom feed", "application/atom+xml", "atom"),
        # sitemaps.org registered no type; this one is ours.
        ("sitemap", "application/x-sitemap+xml", ""),
    )
    csv = Format(
        kind="csv",
        word="CSV",
        handler=_HERE + "_csv:CsvHandler",
        media_types=(),
        is_text=True,
        paths=("*",),
        unit="rows",
    )
    yield from family(replace(csv, sniff=sniff_csv), ("CSV", "text/csv application/csv", "csv"))
    yield from family(csv, ("TSV", "text/tab-separated-values", "tsv tab"))
    sheets = Format(
        kind="spreadsheet",
        word="spreadsheet",
        handler=_HERE + "_sheets:SheetsHandler",
        media_types=(),
        signed=True,
    )
    yield sheets
    yield from family(
        replace(sheets, zip_members=(_PACKAGE, "xl/workbook.bin")),
        ("XLSB", f"{_EXCEL}.sheet.binary.macroenabled.12", "xlsb"),
    )
    formulas = replace(sheets, paths=("formulas", "formulas/*"))
    yield from family(
        replace(formulas, zip_members=(_PACKAGE, "xl/vbaProject.bin")),
        ("XLSM", f"{_EXCEL}.sheet.macroenabled.12", ""),
    )
    yield from family(
        replace(formulas, zip_members=(_PACKAGE, "xl/")),
        ("XLSX", f"{_OOXML}sheet {_OOXML}template", "xlsx"),
    )
    yield from family(replace(sheets, ole_members=("Workbook", "Book")), ("XLS", _EXCEL, "xls"))
    yield from family(sheets, ("ODS", f"{_ODS} {_ODS}*", "ods"))
    yield from family(
        replace(sheets, handler=_HERE + "_sqlite:SqliteHandler"),
        (
            "SQLite database",
            "application/vnd.sqlite3 application/x-sqlite3",
            "sqlite sqlite3 db",
            b"SQLite format 3\0",
        ),
    )
    yield from family(
        replace(sheets, handler=UnreadHandler),
        (
            "Parquet file",
            "application/vnd.apache.parquet application/x-parquet",
            "parquet",
            b"PAR1",
        ),
    )


FORMATS = tuple(_formats())
