"""The small pages and feeds by which the kinds of loss were first told apart, file by file."""

from pathlib import Path

import pytest

from fetchstash.handlers import ExtractLimits, Hints
from tests.handlers.parts import handler_named

DATA = Path(__file__).parent / "data" / "pages"
WRITER = {"published": "2026-03-04", "author": "Ada North"}
READS = {
    "cell-picture.html": ("| Export | No | Yes |",),
    "cell-svg.html": ("| Export | Excluded | Included |",),
    "cell-screen-reader.html": ("| Export | No | Yes |",),
    "stars.html": ("Rating: 4.5 out of 5 stars of guests",),
    "code-under-dropdown.html": ("```\nimport x\napp.use(y)\n```",),
    "code-gutter.html": ("```python\np = 61\nq = 97\n```",),
    "code-without-pre.html": ("```\ndef a():\n    return 1\n\nprint(a())\n```",),
    "formula-katex.html": ("If", "∀x(M→D)"),
    "formula-picture.html": (r"$\exp(x) - \log(y)$", r"$\frac{a}{b}$"),
    "binomial.html": (r"\binom{n}{k}",),
    "byline-class.html": ("Ada North",),
    "byline-words.html": ("Ada North",),
    "byline-microdata.html": ("Ada North",),
    "byline-cdata.html": ("The committee met",),
    "style-semicolon.html": ("The committee met", "After a long debate"),
    "style-escaped.html": ("The committee met", "After a long debate"),
    "dialog-over-app.html": ("The committee met",),
    "unveiled-by-script.html": ("The committee met", "until a script of it shows it"),
    "ordered-values.html": (
        "10. ten\n11. eleven",
        "2. two\n1. one",
        "a. first",
        "- alpha\n  - gamma",
    ),
    "srcdoc.html": ("KESTREL",),
    "endless-scroll.html": ("# Harbour wall",),
    "captions.html": tuple(f"The wall in 190{n}" for n in (1, 3, 5, 7)),
    "rss-content-and-description.xml": ("KESTREL",),
    "rss-long-description.xml": ("KESTREL",),
    "atom-content-and-summary.xml": ("KESTREL",),
    "atom-xhtml.xml": ("KESTREL",),
    "menu-shell-twin.html": (),
}
READS_NOT = {
    "binomial.html": (r"\frac",),
    "endless-scroll.html": ("Another story",),
    "menu-shell-twin.html": ("menu",),
}
FACTS = {
    "byline-class.html": WRITER,
    "byline-words.html": WRITER,
    "byline-microdata.html": WRITER,
    "byline-cdata.html": WRITER,
    "endless-scroll.html": {"left_out": "other stories"},
    "menu-shell-twin.html": {"page_verdict": "empty_shell", "leads_to": "example.org/guide.md"},
}


def test_each_file_is_a_case() -> None:
    assert {path.name for path in DATA.iterdir()} == set(READS)


@pytest.mark.parametrize("name", READS)
def test_a_case_is_read_as_it_should_be(name: str) -> None:
    handler = "feed" if name.endswith(".xml") else "html"
    hints = Hints(url="https://example.org/a/page")
    extracted = handler_named(handler).extract(DATA / name, hints, ExtractLimits())
    text = "".join(part.text for part in extracted.parts or ())
    assert [part for part in READS[name] if part not in text] == []
    assert [part for part in READS_NOT.get(name, ()) if part in text] == []
    if name == "captions.html":
        assert text.count("Workers at the wall") == 4
    for fact, value in FACTS.get(name, {}).items():
        assert value in getattr(extracted.facts, fact)
