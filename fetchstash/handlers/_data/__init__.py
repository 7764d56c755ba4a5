"""Data: JSON, YAML, XML, tables, workbooks, databases, notebooks and calendars."""

from dataclasses import replace
from enum import unique

from fetchstash.errors import BadArgument, OutOfRange, TooLarge
from fetchstash.handlers._binary import UnreadHandler
from fetchstash.handlers._contract import Format, Head, Sniffed, variant
from fetchstash.handlers._reasons import FETCH_AGAIN, KEPT, READ_LINES, THERE_INSIDE, ReasonTable
from fetchstash.handlers._sniffers import sniff_csv, sniff_json, sniff_xml, sniff_yaml
from fetchstash.text.facts import QUERY


@unique
class DataReason(ReasonTable):
    """Why data are not read."""

    NOT_IN_OBJECT = (
        "There is nothing at {name}: the object before it has {count:other key}.",
        THERE_INSIDE,
        OutOfRange,
    )
    NOT_IN_ARRAY = (
        "There is nothing at {name}: the array before it has {count:item}, counted from 0.",
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
    BAD_JQ = (
        "{name} is no path that is understood here.",
        "Write a JSONPath such as $.items[?@.price > 5].name, or a query as sum(x) by y.",
        BadArgument,
    )
    BAD_XPATH = (
        "{name} is no path to elements.",
        "Write it as in /catalog/book[2]/title or //book/@id.",
        BadArgument,
    )
    NO_COLUMN = (
        "There is no column {name}.",
        "Take names of the header, numbers from 1 to {count}, or a query as sum(x) by y.",
        OutOfRange,
    )
    BAD_QUERY = (
        "{name} is not understood in this query.",
        "Write it like sum(price) by region where year >= 2024 top 5.",
        BadArgument,
    )
    QUERY_ENDS = (
        "The query {name} breaks off.",
        "Write it like sum(price) by region where year >= 2024 top 5.",
        BadArgument,
    )
    QUERY_MIXED = (
        "The query {name} asks for single columns beside sums of many rows.",
        "Name those columns behind by, as in sum(price) by region top 5 by count.",
        BadArgument,
    )
    QUERY_NO_COLUMN = (
        "There is no column {name}.",
        "Take a column that is there, in quotes if it has spaces.",
        OutOfRange,
    )
    QUERY_NO_ROWS = (
        "There are no rows at {name}.",
        "Name a sheet, a table or an array of records behind from.",
        OutOfRange,
    )
    QUERY_WHICH_ROWS = (
        "There are {count:,} tables here.",
        "Name one behind from, as in count from Sheet1.",
        BadArgument,
    )
    QUERY_GROUPS = (
        "There are more than {limit:,} groups or distinct values.",
        "Group by a column with fewer values, or take fewer rows with where.",
        TooLarge,
    )
    BAD_JSON = "This is not valid JSON: it is kept as it came, and has no paths.", READ_LINES
    BAD_YAML = "This is not valid YAML, so it has no paths.", READ_LINES
    BAD_TOML = "This is not valid TOML, so it has no paths.", READ_LINES
    YAML_ALIASES = (
        "Its aliases expand to more than {limit:,} values, so it has no paths.",
        READ_LINES,
    )
    YAML_DEPTH = "It is nested deeper than {limit}, so it has no paths.", READ_LINES
    YAML_ANCHOR = "One of its anchors is missing or holds itself, so it has no paths.", READ_LINES
    INI_VALUES = (
        "INI has sections, and no values that are read by path.",
        "Take a section of its outline.",
    )
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
        "its cells lie too far apart: a sheet spans {cells:,} cells, and {limit:,} are read",
        KEPT,
    )
    DATABASE_DAMAGED = "the database is damaged or cut short", FETCH_AGAIN
    DATABASE_EMPTY = "the database has no tables", KEPT
    SVG_LARGE = "the drawing is larger than {limit:,} bytes", READ_LINES
    NOTEBOOK_LARGE = "the notebook is larger than {limit:,} bytes", KEPT
    NOTEBOOK_EMPTY = "it holds no cells", KEPT
    NOTEBOOK_DEPTH = "its JSON is nested too deeply", KEPT
    NOTEBOOK_DAMAGED = "its JSON is damaged or cut short", FETCH_AGAIN
    NO_ENTRY = (
        "There is no entry {name}: the calendar has {count:,}.",
        'Use "/1" to "/{count}", or "/" and a UID.',
        OutOfRange,
    )
    LONG_ENTRY = (
        "of an entry only the first {limit:,} characters were kept; its end says where the rest is",
        KEPT,
    )
    NO_ENTRIES = (
        "There is no entry {name}: the calendar has 0.",
        "Leave the path out.",
        OutOfRange,
    )


def _sniff_calendar(head: Head) -> Sniffed | None:
    begins = head.text.lstrip("\ufeff \t\r\n")[:15].upper() == "BEGIN:VCALENDAR"
    return Sniffed("text/calendar", "begins as a calendar") if begins else None


_HERE = "fetchstash.handlers._data."
_JSON = Format(
    kind="json",
    word="JSON",
    handler=_HERE + "_json:JsonHandler",
    media_types=(),
    is_text=True,
    paths=("/*", "$*", QUERY),  # a JSON Pointer (RFC 6901), a JSONPath (RFC 9535)
)
_LINES = replace(_JSON, kind="jsonl", handler=_HERE + "_json:JsonLinesHandler")
_YAML = replace(_JSON, kind="yaml", handler=_HERE + "_yaml:YamlHandler")
_XML = replace(_JSON, kind="xml", handler=_HERE + "_xml:XmlHandler", paths=("/*",))
_FEED = replace(_XML, handler=_HERE + "_feeds:FeedHandler", is_text=False, is_markup=True)
_JSON_FEED = replace(_JSON, handler=_HERE + "_feeds:JsonFeedHandler", is_text=False, is_markup=True)
_SVG = replace(_XML, kind="image", handler=_HERE + "_xml:SvgHandler", is_text=False, is_markup=True)
_CALENDAR = replace(_XML, kind="text", handler=_HERE + "_ics:IcsHandler")
_TABLE = replace(
    _XML, kind="csv", handler=_HERE + "_csv:CsvHandler", paths=("*", QUERY), unit="rows"
)
_SHEETS = Format(
    kind="spreadsheet",
    word="spreadsheet",
    handler=_HERE + "_sheets:SheetsHandler",
    media_types=(),
    signed=True,
    paths=(QUERY,),
)
_FORMULAS = replace(_SHEETS, paths=("formulas", "formulas/*", QUERY))
_DATABASE = replace(_SHEETS, handler=_HERE + "_sqlite:SqliteHandler")
_UNREAD = replace(_SHEETS, handler=UnreadHandler, paths=())
_NOTEBOOK = replace(  # sniffed with JSON
    _SVG, kind="notebook", handler=_HERE + "_notebook:NotebookHandler", paths=()
)

_OOXML = "application/vnd.openxmlformats-officedocument.spreadsheetml."
_ODS = "application/vnd.oasis.opendocument.spreadsheet"
_EXCEL = "application/vnd.ms-excel"
_MACROS = f"{_EXCEL}.sheet"
_BOOK = ("[Content_Types].xml", "xl/")
_MACRO_BOOK = ("[Content_Types].xml", "xl/vbaProject.bin")
_BINARY_BOOK = ("[Content_Types].xml", "xl/workbook.bin")
_SQLITE = "application/vnd.sqlite3 application/x-sqlite3"
_PARQUET = "application/vnd.apache.parquet application/x-parquet"
_JSONL = "application/jsonl application/jsonlines application/x-jsonlines"
_YAMLS = "application/yaml application/x-yaml text/yaml text/x-yaml *+yaml"
_XMLS = "application/xml text/xml application/xml-dtd *+xml"

FORMATS = (
    variant(
        _JSON, "JSON", "application/json text/json text/x-json", "json har map", sniff=sniff_json
    ),
    variant(_JSON, "JSON", "application/geo+json", "geojson"),
    variant(_JSON, "JSON", "application/manifest+json", "webmanifest"),
    variant(_JSON, "JSON", "application/ld+json", "jsonld"),
    variant(_JSON, "JSON", "*+json", ""),
    variant(_JSON_FEED, "JSON Feed", "application/feed+json", ""),  # sniffed with JSON
    variant(_LINES, "JSON Lines", _JSONL, "jsonl"),
    variant(_LINES, "JSON Lines", "application/x-ndjson application/ndjson", "ndjson"),
    variant(_LINES, "JSON Lines", "application/json-seq *+json-seq", ""),
    variant(_YAML, "YAML", _YAMLS, "yaml yml", sniff=sniff_yaml),
    variant(_YAML, "TOML", "application/toml", "toml", kind="text"),
    variant(_YAML, "text", "text/x-ini", "ini cfg", kind="text", paths=()),
    variant(_XML, "XML", _XMLS, "xml xsd xsl xslt plist", sniff=sniff_xml),
    variant(_XML, "XML", "application/rdf+xml", "rdf"),
    variant(_XML, "XML", "application/vnd.google-earth.kml+xml", "kml"),
    variant(_XML, "XML", "application/gpx+xml", "gpx"),
    variant(_SVG, "SVG image", "image/svg+xml", "svg", pictures=True),
    variant(_FEED, "RSS feed", "application/rss+xml", "rss"),
    variant(_FEED, "Atom feed", "application/atom+xml", "atom"),
    # sitemaps.org registered no type; this one is ours.
    variant(_FEED, "sitemap", "application/x-sitemap+xml", ""),
    variant(_TABLE, "CSV", "text/csv application/csv", "csv", sniff=sniff_csv),
    variant(_TABLE, "TSV", "text/tab-separated-values", "tsv tab"),
    _SHEETS,
    variant(_SHEETS, "XLSB", f"{_MACROS}.binary.macroenabled.12", "xlsb", zip_members=_BINARY_BOOK),
    variant(_FORMULAS, "XLSM", f"{_MACROS}.macroenabled.12", "", zip_members=_MACRO_BOOK),
    variant(_FORMULAS, "XLSX", f"{_OOXML}sheet {_OOXML}template", "xlsx", zip_members=_BOOK),
    variant(_SHEETS, "XLS", _EXCEL, "xls", ole_members=("Workbook", "Book")),
    variant(_SHEETS, "ODS", f"{_ODS} {_ODS}*", "ods"),
    variant(_DATABASE, "SQLite database", _SQLITE, "sqlite sqlite3 db", b"SQLite format 3\0"),
    variant(_UNREAD, "Parquet file", _PARQUET, "parquet", b"PAR1"),
    variant(_NOTEBOOK, "notebook", "application/x-ipynb+json", "ipynb"),
    variant(_CALENDAR, "calendar", "text/calendar", "ics", sniff=_sniff_calendar),
    variant(_CALENDAR, "vCard", "text/vcard text/x-vcard", "vcf", paths=()),
)
