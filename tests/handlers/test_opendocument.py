"""OpenDocument: comments, titles, numbers of lists, forms and signs, as LibreOffice writes them."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

from collections.abc import Mapping

import pytest

from tests.handlers.conftest import Read, reads
from tests.handlers.parts import data_file
from tests.handlers.test_docx import SPACES, items, odf, opendocument_table


def p(text: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def style(name: str, inner: str = "", **attributes: str) -> str:
    named = " ".join(
        f'style:{key.replace("_", "-")}="{value}"' for key, value in attributes.items()
    )
    return f'<style:style style:name="{name}" {named}>{inner}</style:style>'


def number_level(level: int, start: str = "1") -> str:
    return f'<text:list-level-style-number text:level="{level}" style:num-format="1" text:start-value="{start}"/>'


def labels(level: int, form: str, **attributes: str) -> str:
    named = " ".join(
        f'style:{key.replace("_", "-")}="{value}"' for key, value in attributes.items()
    )
    return f'<text:list-level-style-number text:level="{level}" style:num-format="{form}" {named}/>'


def h(text: str, level: int = 1, more: str = "") -> str:
    return f'<text:h text:outline-level="{level}" {more}>{text}</text:h>'


def list_style(name: str, *levels: str) -> str:
    return f'<text:list-style style:name="{name}">{"".join(levels)}</text:list-style>'


def bullet(sign: str, font: str) -> str:
    inner = f'<style:text-properties style:font-name="{font}"/>'
    return f'<text:list-level-style-bullet text:level="1" text:bullet-char="{sign}">{inner}</text:list-level-style-bullet>'


STYLES = (
    '<style:font-face style:name="W1" svg:font-family="Wingdings"/>'
    + style("Title")
    + style("Mine", parent_style_name="Title")
    + style("Ring", parent_style_name="Ring")
    + style("Dingbats", '<style:text-properties style:font-name="W1"/>')
    + style("Numbers", list_style_name="ByStyle")
    + list_style("ByStyle", number_level(1, "4"))
    + list_style("Deep", number_level(1), number_level(2))
    + list_style("Ticks", bullet("\uf0fc", "W1"))
    + list_style(
        "Letters",
        labels(1, "1", num_prefix="§ ", num_suffix=""),
        labels(2, "a", num_suffix=")"),
        labels(3, "i", num_suffix=".").replace("/>", ' text:display-levels="2"/>'),
    )
    + list_style("Far", labels(10**14, "1").replace("/>", f' text:display-levels="{10**14}"/>'))
    + list_style("Own", labels(1, "I", num_list_format="Art. %1%:"))
    + "<text:outline-style>"
    + labels(1, "1", num_suffix=".").replace("list-level-style-number", "outline-level-style")
    + labels(2, "a", num_suffix=")").replace("list-level-style-number", "outline-level-style")
    + "</text:outline-style>"
)


def document(body: str, styles: str = STYLES) -> bytes:
    spaces = f'{SPACES} xmlns:svg="svg" xmlns:field="field" xmlns:loext="loext"'
    return odf(
        f"<x {spaces}>{body}</x>",
        **{"styles.xml": f"<office:document-styles {spaces}>{styles}</office:document-styles>"},
    )


def comment(text: str, name: str = "") -> str:
    parts = "<dc:creator>Anna</dc:creator><dc:date>2026-01-01</dc:date><meta:creator-initials>A</meta:creator-initials><loext:sender-initials>S</loext:sender-initials>"
    return f'<office:annotation office:name="{name}">{parts}<text:p>{text}</text:p></office:annotation>'


def item(text: str, start: str = "") -> str:
    start = f'text:start-value="{start}"' if start else ""
    return f"<text:list-item {start}>{text}</text:list-item>"


def listed(*inner: str, style: str = "Deep", more: str = "") -> str:
    return f'<text:list text:style-name="{style}" {more}>{"".join(inner)}</text:list>'


END = '<office:annotation-end office:name="c"/>'
CONTINUED = 'text:continue-numbering="true"'
BOX = "vnd.oasis.opendocument.field.FORMCHECKBOX"
CASES: Mapping[str, tuple[str, str]] = {
    "comment on a whole sentence": (
        p(f"{comment('Why?', 'c')}It is so.{END}"),
        "It is so.\n\nComment by Anna: Why?",
    ),
    "comment on words": (
        p(f"It is {comment('Why?', 'c')}so{END}.") + p("Next."),
        'It is so.\n\nComment by Anna on "so": Why?\n\nNext.',
    ),
    "comment at a place": (p(f"It is {comment('Why?')}so."), "It is so.\n\nComment by Anna: Why?"),
    "comment in a table": (
        opendocument_table(["A", f"b{comment('Why?')}"], ["c", "d"]),
        "| A | b Comment by Anna: Why? |\n| --- | --- |\n| c | d |",
    ),
    "title": (p("Big", "Title") + p("Mine", "Mine") + p("x", "Ring"), "# Big\n\n# Mine\n\nx"),
    "list that goes on": (
        listed(item(p("a")), item(p("b"))) + p("Between.") + listed(item(p("c")), more=CONTINUED),
        "1. a\n2. b\n\nBetween.\n\n3. c",
    ),
    "list that goes on by its name": (
        listed(item(p("a")), more='xml:id="l1"')
        + listed(item(p("x")), style="Other")
        + listed(item(p("b")), more='text:continue-list="l1"'),
        "1. a\n- x\n2. b",
    ),
    "inner list that goes on": (
        listed(item(p("a") + listed(item(p("a1")))), item(p("b")))
        + listed(item(listed(item(p("b1")))), more=CONTINUED)
        + listed(item(p("c")), more=CONTINUED),
        "1. a\n  1. a1\n2. b\n  2. b1\n3. c",
    ),
    "list that begins anew": (listed(item(p("a"))) + listed(item(p("b"))), "1. a\n1. b"),
    "number of one's own": (
        listed(item(p("a")), item(p("b"), "7"), item(p("c"))),
        "1. a\n7. b\n8. c",
    ),
    "numbers by the style": (
        f"<text:list>{item(p('a', 'Numbers'))}</text:list>" + p("x"),
        "1. a\n\nx",
    ),
    "first number of a style": (listed(item(p("a")), item(p("b")), style="ByStyle"), "4. a\n5. b"),
    "paragraphs of one item": (
        listed(item(p("a") + p("more")), item(p("b"))),
        "1. a\n  more\n2. b",
    ),
    "item without a number": (
        listed(f"<text:list-header>{p('head')}</text:list-header>", item(p("a"))),
        "  head\n1. a",
    ),
    "labels": (
        listed(
            item(
                p("a")
                + listed(
                    item(p("b")), item(p("c") + listed(item(p("d")), style="")), style="Letters"
                )
            ),
            style="Letters",
        ),
        "§ 1 a\n  a) b\n  b) c\n    b.i. d",
    ),
    "label of LibreOffice": (items("a", "b", style="Own"), "Art. I: a\nArt. II: b"),
    "headings": (
        h("A")
        + h("B", 2)
        + h("C", 2)
        + h("D")
        + h("E", 2)
        + h("F", 1, 'text:is-list-header="true"'),
        "# 1. A\n\n## a) B\n\n## b) C\n\n# 2. D\n\n## a) E\n\n# F",
    ),
    "levels that nothing has": (
        h("A", 10**12) + listed(item(p("b")), style="Far"),
        "###### A\n\n- b",
    ),
    "headings in a list": (
        listed(item(h("A") + listed(item(h("B", 2)), style="")), style="Letters"),
        "# § 1 A\n\n## a) B",
    ),
    "ticks as bullets": (items("a", style="Ticks"), "- ✓ a"),
    "signs": (
        p('<text:span text:style-name="Dingbats">\uf0fc û</text:span> û') + p("ü", "Dingbats"),
        "✓ ✗ û\n\n✓",
    ),
    "ticked box": (
        p(
            f'<field:fieldmark field:type="{BOX}"><field:param field:name="Checkbox_Checked" field:value="true"/></field:fieldmark> a'
        ),
        "[x] a",
    ),
    "box that is not ticked": (p(f'<field:fieldmark field:type="{BOX}"/> a'), "[ ] a"),
    "chosen entry": (
        p(
            '<text:drop-down><text:label text:value="Low"/><text:label text:value="High" text:current-selected="true"/></text:drop-down> a'
        ),
        "High a",
    ),
    "placeholder": (p("Name:<text:placeholder>&lt;click></text:placeholder> x"), "Name: x"),
}
test_opendocument_is_read_as_it_is_shown = reads(
    "odf", {name: (document(body), f"{text}\n\n") for name, (body, text) in CASES.items()}
)

CHART = """<office:document-content xmlns:office="o" xmlns:chart="c" xmlns:table="t" xmlns:text="x" xmlns:draw="d" xmlns:svg="s"><chart:chart chart:class="chart:bar"/>
<table:table><table:table-row><table:table-cell/><table:table-cell><text:p>Units</text:p><draw:g><svg:desc>Sales.B1:Sales.B1</svg:desc></draw:g></table:table-cell></table:table-row>
<table:table-row><table:table-cell><text:p>Jan</text:p></table:table-cell><table:table-cell office:value="20"><draw:g><svg:desc>Sales.B2</svg:desc></draw:g></table:table-cell></table:table-row></table:table></office:document-content>"""


def test_a_chart_gives_values_without_their_addresses(read: Read) -> None:
    body = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    for around in (f"<text:p>{body}</text:p>", f"<draw:page>{body}</draw:page>"):
        text = read("odf", odf(around, **{"Object 1/content.xml": CHART}))[1]
        assert "|  | Units |\n| --- | --- |\n| Jan | 20 |" in text
        assert "Sales" not in text


def test_an_object_that_is_no_chart_is_named_where_it_stands(read: Read) -> None:
    sheet = (
        f"<x {SPACES}><office:automatic-styles><text:text>-</text:text></office:automatic-styles>"
        "<office:body><office:spreadsheet/></office:body></x>"
    )
    members = {"Object 1/content.xml": sheet, "Object 2": "OLE"}
    for place, named in (("Object 1", "spreadsheet (Object 1)"), ("Object 2", "object (Object 2)")):
        kind = "object" if place == "Object 1" else "object-ole"
        drawn = f'<draw:frame><draw:{kind} xlink:href="./{place}"/><draw:image xlink:href="./p"/></draw:frame>'
        for around in (f"<text:p>So: {drawn} ends.</text:p>", f"<draw:page>{drawn}</draw:page>"):
            assert f"[embedded: {named}]" in read("odf", odf(around, **members))[1]


@pytest.mark.parametrize(
    ("name", "handler", "words", "absent"),
    [
        (
            "c-writer.odt",
            "odf",
            [
                "# Harbour contract\n",
                "\nThis sentence has a comment.\n",
                "Comment by Anna: Please check",
                "1. step one\n2. step two\n",
            ],
            ["AThis"],
        ),
        ("c-calc0.ods", "sheets", ["| Jan | 20 |", "| Mar | 40 |"], ["Sales.B"]),
    ],
)
def test_a_document_of_libreoffice_is_read_right(
    read: Read, name: str, handler: str, words: list[str], absent: list[str]
) -> None:
    text = read(handler, data_file(name))[1]
    assert [word for word in words if word not in text] == []
    assert [word for word in absent if word in text] == []
