"""A web page becomes Markdown of its content."""

from unittest.mock import Mock

import pytest

from fetchstash.handlers import ExtractLimits, Hints
from fetchstash.handlers._html import _blocks, _content, _repairs, _tree
from fetchstash.handlers._prose import DITTO
from tests.handlers.conftest import Read, Save
from tests.handlers.parts import PROSE, handler_named


def article(body: str) -> str:
    """Return a page whose content is ``body`` among the usual chrome."""
    return (
        "<!doctype html><html lang=en><head><title>Gate works</title></head><body>"
        "<header><a href=/>Home</a></header>"
        "<nav><ul><li><a href=/a>Alpha menu</a><li><a href=/b>Beta menu</a></ul></nav>"
        f"<main><h1>Gate works</h1><p>{PROSE}</p>{body}<p>{PROSE}</p></main>"
        "<footer><a href=/imprint>Imprint</a> <a href=/terms>Terms</a></footer></body></html>"
    )


FRAGMENTS = {
    "a paragraph is one line": ("<p>One\n  two\tthree</p>", "One two three"),
    "a line break ends a line": (
        "<p>First street 1<br>Second town</p>",
        "First street 1\nSecond town",
    ),
    "two line breaks end a paragraph": (
        "<div>First thing.<br><br>Second thing.</div>",
        "First thing.\n\nSecond thing.",
    ),
    "headings keep their level": ("<h2>Opening</h2><h4>Night</h4>", "## Opening\n\n#### Night"),
    "links become absolute": (
        '<p>See <a href="../tools/key.html#x">the key</a>.</p>',
        "See [the key](https://example.org/tools/key.html#x).",
    ),
    "a link whose text reads as a tag keeps it": (
        '<p>Emits <a href="/gate">&lt;Gate&gt;</a> if 1 <a href="/less">&lt; 2</a>.</p>',
        "Emits [&lt;Gate>](https://example.org/gate) if 1 [< 2](https://example.org/less).",
    ),
    "a link to the same page stays short": (
        '<p>See <a href="page.html#top">the top</a>.</p>',
        "See [the top](#top).",
    ),
    "a heading that links to itself is text": (
        '<h2><a href="#low">Low <i>gate</i></a></h2>',
        "## Low gate",
    ),
    "a heading in a list is no item": (
        "<ol><li><h3>First</h3><p>Do it.</p></li></ol>",
        "### First\n\nDo it.",
    ),
    "linked code is one link": (
        '<p><code><a href="/k">key()</a></code></p>',
        "[`key()`](https://example.org/k)",
    ),
    "a script link is text": ('<p>See <a href="javascript:alert(1)">this</a>.</p>', "See this."),
    "nested or odd parentheses stand in angle brackets (CommonMark 0.31, 6.3)": (
        '<p>A <a href="/a(b(c))">gate</a>, <a href="/a)b">another</a>.</p>',
        "A [gate](<https://example.org/a(b(c))>), [another](<https://example.org/a)b>).",
    ),
    "parentheses in an address stay balanced": (
        '<p><a href="https://example.org/Gate_(lock)">gate</a></p>',
        "[gate](https://example.org/Gate_(lock))",
    ),
    "inline code and strong": (
        "<p>Run <code>gate --open</code> <b>now</b>.</p>",
        "Run `gate --open` **now**.",
    ),
    "lists nest": (
        "<ul><li>one<ul><li>inner</li></ul></li><li>two</li></ul>",
        "- one\n  - inner\n- two",
    ),
    "ordered lists count from their start": ("<ol start=3><li>c</li><li>d</li></ol>", "3. c\n4. d"),
    "definitions stand under their terms": (
        "<dl><dt>sluice</dt><dd>A gate.</dd></dl>",
        "- sluice\n  A gate.",
    ),
    "quotations are marked": ("<blockquote><p>Open it.</p></blockquote>", "> Open it."),
    "a table has one line a row": (
        (
            "<table><tr><th>Gate</th><th>Mark | m</th></tr>"
            "<tr><td>Low</td><td>4<br>5</td></tr></table>"
        ),
        "| Gate | Mark \\| m |\n| --- | --- |\n| Low | 4 5 |",
    ),
    "code is verbatim with its language": (
        '<pre><code class="language-python">def gate():\n    return "&lt;open&gt;"\n</code></pre>',
        '```python\ndef gate():\n    return "<open>"\n```',
    ),
    "code that holds a fence gets a longer one": (
        "<pre>```\nx\n```</pre>",
        "````\n```\nx\n```\n````",
    ),
    "line-number gutters are no code": (
        '<pre><span class="lineno">1</span>open()\n<span class="lineno">2</span>shut()</pre>',
        "```\nopen()\nshut()\n```",
    ),
    "an operator in parentheses is the name of what it links to": (
        '<p><a href="#v:.">(.)</a> joins two gates.</p>',
        "[(.)](#v:.) joins two gates.",
    ),
    "permalinks are no heading text": (
        '<h2>Marks<a class="headerlink" href="#marks">¶</a></h2>',
        "## Marks",
    ),
    "a formula comes as its TeX (MathML Core, annotation)": (
        (
            "<p>So <math><semantics><mi>x</mi>"
            '<annotation encoding="application/x-tex">x^2</annotation></semantics></math>.</p>'
        ),
        "So $x^2$.",
    ),
    "a formula comes as its alttext (LaTeXML)": (
        '<p>So <math alttext="x_{1}^{2}"><mi>x</mi></math>.</p>',
        "So $x_{1}^{2}$.",
    ),
    "a formula without TeX is written": (
        (
            "<p><math><msup><mi>x</mi><mn>2</mn></msup><mo>=</mo><mfrac><mrow><mi>a</mi><mo>−</mo>"
            "<mi>b</mi></mrow><msqrt><mi>c</mi></msqrt></mfrac><mi>sin</mi><mi>y</mi></math></p>"
        ),
        "$x^2 = \\frac{a-b}{\\sqrt{c}}\\sin y$",
    ),
    "sums, matrices and accents are written": (
        (
            "<p><math><munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover><mover><mi>x</mi>"
            "<mo>¯</mo></mover><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr>"
            "<mtr><mtd><mn>3</mn></mtd><mtd><mn>4</mn></mtd></mtr></mtable></math></p>"
        ),
        "$∑_i^n\\overline{x}\\begin{matrix} 1 & 2 \\\\ 3 & 4 \\end{matrix}$",
    ),
    "KaTeX stands there twice and comes once": (
        (
            '<p>So <span class="katex"><span class="katex-mathml"><math><semantics><mi>x</mi>'
            '<annotation encoding="application/x-tex">\\hat x</annotation></semantics></math>'
            '</span><span class="katex-html" aria-hidden="true">x ^ and more of the same</span>'
            "</span>.</p>"
        ),
        "So $\\hat x$.",
    ),
    "MathJax 2 has its TeX in a script": (
        (
            '<p>So <span class="MathJax_Preview">x2</span><span class="MathJax" id=m>x 2</span>'
            '<script type="math/tex" id=m1>x^2</script>.</p>'
        ),
        "So $x^2$.",
    ),
    "MathJax 3 has its MathML inside": (
        (
            "<p>So <mjx-container><mjx-math>x2</mjx-math><mjx-assistive-mml><math><msup><mi>x</mi>"
            "<mn>2</mn></msup></math></mjx-assistive-mml></mjx-container>.</p>"
        ),
        "So $x^2$.",
    ),
    "a formula of Wikipedia is that of its picture": (
        (
            '<p>So <span class="mwe-math-element"><span class="mwe-math-mathml-inline" '
            'style="display: none;"><math><mi>x</mi></math></span><img src="/math/render/svg/1" '
            'class="mwe-math-fallback-image-inline" alt="{\\displaystyle x^{2}}"></span>.</p>'
        ),
        "So $x^{2}$.",
    ),
    "TeX that a script would write stands between dollars": (
        "<script src=mathjax.js></script><p>So \\(a_1 &lt; b\\) and \\[ c^2 \\].</p>",
        "So $a_1 < b$ and $c^2$.",
    ),
    "superscripts and subscripts keep their place": (
        "<p>10<sup>−3</sup> m<sup>2</sup> of CO<sub>2</sub>, T<sub>max</sub>, 1<sup>st</sup></p>",
        "10^{−3} m^2 of CO_2, T_{max}, 1st",
    ),
    "a note's number is a link": (
        '<p>It opens<sup><a href="#n1">[1]</a></sup>.</p>',
        "It opens[[1]](#n1).",
    ),
    "deleted and inserted text is marked": (
        "<p>Open at <del>eight</del> <ins>nine</ins>, <s>daily</s>.</p>",
        "Open at ~~eight~~ <ins>nine</ins>, ~~daily~~.",
    ),
    "a value that spans rows is repeated in them": (
        (
            "<table><tr><th>River<th>Gate<th>Mark<tr><td rowspan=2>Lea<td>Low<td>4"
            "<tr><td>High<td>5<tr><td>Aire<td>Top<td>6</table>"
        ),
        (
            "| River | Gate | Mark |\n| --- | --- | --- |\n| Lea | Low | 4 |\n| Lea | High | 5 |\n"
            "| Aire | Top | 6 |"
        ),
    ),
    "a value that spans many rows leaves all others in their columns": (
        f"<table><tr><th>It<th>At<tr><td rowspan=40>{'Lea' * 9}<td>0{'<tr><td>1' * 39}</table>",
        f"| It | At |\n| --- | --- |\n| {'Lea' * 9} | 0 |" + f"\n| {'Lea' * 9} | 1 |" * 39,
    ),
    "a value that spans columns leaves the others empty": (
        (
            "<table><tr><th colspan=2>Gates<th>Mark<tr><td>Low<td rowspan=2 colspan=2>none"
            "<tr><td>High</table>"
        ),
        "| Gates |  | Mark |\n| --- | --- | --- |\n| Low | none |  |\n| High | none |  |",
    ),
    "groups of columns stand in the names of theirs": (
        (
            "<table><tr><th colspan=5>Boats in 2026<tr><th rowspan=2>Gate<th colspan=2>Up"
            "<th colspan=2>Down<tr><th>Mon<th>Tue<th>Mon<th>Tue<tr><td>Low<td>1<td>2<td>3<td>4"
            "<tr><td>High<td colspan=2>none<td>5</table>"
        ),
        (
            "Boats in 2026\n| Gate | Up Mon | Up Tue | Down Mon | Down Tue |\n"
            "| --- | --- | --- | --- | --- |\n| Low | 1 | 2 | 3 | 4 |\n| High | none |  | 5 |  |"
        ),
    ),
    "a row that says it spans a hundred columns has as many as the others": (
        "<table><tr><th>Gate<th>Mark<tr><td colspan=100>Lea<tr><td>Low<td>4</table>",
        "| Gate | Mark |\n| --- | --- |\n| Lea |  |\n| Low | 4 |",
    ),
    "cells keep their lists and code on the row's line": (
        (
            "<table><thead><tr><th>Gate<th>Use</thead><tr><td>Low<td><ul><li>a<li>b</ul>"
            "<pre>open()\nshut()</pre></table>"
        ),
        "| Gate | Use |\n| --- | --- |\n| Low | • a • b `open()`<br>`shut()` |",
    ),
    "a table in a cell stays in its row": (
        (
            "<table><tr><th>Gate<th>Marks<tr><td>Low<td><table><tr><td>1<td>2</table>"
            "<tr><td>High<td>3</table>"
        ),
        "| Gate | Marks |\n| --- | --- |\n| Low | 1 2 |\n| High | 3 |",
    ),
    "a heading inside of a table of data parts it": (
        (
            "<table><tr><td colspan=2><h2>Public gates</h2><tr><td>void<td>open()<tr><td>int"
            "<td>mark()<tr><td colspan=2><h2>Private</h2><tr><td>bool<td>shut()</table>"
        ),
        (
            "## Public gates\n\n| void | open() |\n| --- | --- |\n| int | mark() |\n\n"
            "## Private\n\n| bool | shut() |\n| --- | --- |"
        ),
    ),
    "code that is shown as a table is code": (
        (
            '<table class="highlight"><tr><td data-line-number=1></td>'
            '<td class="blob-code">def a():</td></tr><tr><td data-line-number=2></td>'
            '<td class="blob-code">    return 1</td></tr>'
            "</table>"
        ),
        "```\ndef a():\n    return 1\n```",
    ),
    "a column of line numbers is no code": (
        (
            '<table class="highlighttable"><tr><td class="linenos"><div><pre>1\n2</pre></div></td>'
            '<td class="code"><pre>open()\nshut()</pre></td></tr></table>'
        ),
        "```\nopen()\nshut()\n```",
    ),
    "code in a table keeps its lines, each piece under the name of its column": (
        (
            '<table class="example"><tr><th>Example:</th><th>Output:</th></tr><tr>'
            '<td><div class="fragment"><div class="line">if (open) {</div>'
            '<div class="line">  shut();</div>\n<div class="line">}</div>\n'
            '<div class="ttc" id="a1"><div class="ttname">shut</div><div class="ttdoc">Shuts.</div>'
            '</div></div></td><td><pre class="fragment"> 1 2\n13 4</pre></td></tr></table>'
        ),
        "Example:\n\n```\nif (open) {\n  shut();\n}\n```\n\nOutput:\n\n```\n 1 2\n13 4\n```",
    ),
    "a row that shows code parts a table, and the names of the columns are repeated": (
        (
            "<table><tr><th>Gate<th>Call<tr><td>Low<td><code>open()</code>"
            "<tr><td>High<td><pre>if dry:\n  open()\n  rest()</pre><tr><td>Top<td>none</table>"
        ),
        (
            "| Gate | Call |\n| --- | --- |\n| Low | `open()` |\n\nGate\n\nHigh\n\nCall\n\n"
            "```\nif dry:\n  open()\n  rest()\n```\n\n"
            "| Gate | Call |\n| --- | --- |\n| Top | none |"
        ),
    ),
    "lines of code in a cell are parted": (
        "<table><tr><th>Gate<th>Calls<tr><td>Low<td><code>open()</code><br><code>shut()</code></table>",
        "| Gate | Calls |\n| --- | --- |\n| Low | `open()`<br>`shut()` |",
    ),
    "code in a cell that breaks its lines itself is a block": (
        "<table><tr><td><code>if dry:<br>&nbsp; open()<br>\n  rest()</code></td></tr></table>",
        "```\nif dry:\n  open()\nrest()\n```",
    ),
    "lines of code in a paragraph are parted": (
        "<p>Use <code>open()<br>shut()</code> twice.</p>",
        "Use `open()`\n`shut()` twice.",
    ),
    "code of one element a line is a block, without its numbers": (
        (
            '<div class="fragment"><div class="line"><a id="l1"></a><span class="lineno">    1'
            '</span>if dry:</div>\n<div class="foldopen"><div class="line"><span class="lineno">'
            '    2</span>  <a href="/open">open</a>()</div></div>\n</div>'
        ),
        "```\nif dry:\n  open()\n```",
    ),
    "code beside a column of numbers in elements is a block": (
        (
            '<div class="syntaxhighlighter"><table><caption>Gate</caption><tr>'
            '<td class="gutter"><div class="line number1">1</div><div class="line number2">2</div>'
            '</td><td class="code"><div class="container"><div class="line number1">'
            '<code class="js keyword">if</code> (dry)</div><div class="line number2">'
            '<code class="js spaces">&nbsp;&nbsp;</code>open();</div></div></td></tr></table></div>'
        ),
        "Gate\n\n```\nif (dry)\n  open();\n```",
    ),
    "code of one table row a line is a block, and what sets it apart no quotation": (
        (
            '<blockquote class="SCodeFlow"><table class="RktBlk"><tr><td>&gt;&nbsp;(<a href=/o>open'
            '</a></td></tr><tr><td><table class="RktBlk"><tr><td>&nbsp;&nbsp;low)</td></tr></table>'
            "</td></tr><tr><td>&nbsp;</td></tr><tr><td><p>12</p></td></tr></table></blockquote>"
        ),
        "```\n> (open\n  low)\n\n12\n```",
    ),
    "cells of a line of code stand in it": (
        (
            '<blockquote><table class="boxed"><tr><td><blockquote><p>procedure</p><table '
            'class="prototype"><tr><td>(open</td><td>&nbsp;</td><td>gate</td></tr><tr><td>&nbsp;'
            "</td><td>&nbsp;</td><td>[day])</td></tr></table></blockquote></td></tr></table>"
            "</blockquote>"
        ),
        "procedure\n\n```\n(open gate\n  [day])\n```",
    ),
    "a quotation in quotations is marked once": (
        (
            "<blockquote><blockquote><p>Open it.</p></blockquote></blockquote>"
            "<blockquote><p>So</p><blockquote>shut</blockquote></blockquote>"
        ),
        "> Open it.\n\n> So\n\n> > shut",
    ),
    "lines of a poem are no code": (
        '<div class="line-block"><div class="line">Low gate</div><div class=line>High</div></div>',
        "Low gate\n\nHigh",
    ),
    "numbers that a program prints are no line numbers": (
        (
            "<table><tr><td><pre>print(a)\nprint(b)</pre></td><td><pre>1 2\n3 4</pre></td></tr>"
            "</table>"
        ),
        "```\nprint(a)\nprint(b)\n```\n\n```\n1 2\n3 4\n```",
    ),
    "a formula that is set as a table is a line": (
        (
            '<table class="ltx_equation ltx_eqn_table"><tr class="ltx_eqn_row"><td></td><td>'
            '<math alttext="a=b"></math></td><td></td><td><span>(1)</span></td></tr></table>'
        ),
        "$a=b$ (1)",
    ),
    "the link to edit a section is no heading": (
        '<h2>Low gate<span class="mw-editsection">[<a href=/e>edit</a>]</span></h2>',
        "## Low gate",
    ),
    "tasks keep their state": (
        (
            '<ul><li><input type="checkbox" disabled checked> Oil the gate</li>'
            '<li><label><input type="checkbox" class="task-list-item-checkbox"> Paint</label></ul>'
        ),
        "- [x] Oil the gate\n- [ ] Paint",
    ),
    "the fields of a form part their labels": (
        (
            "<p><label>Gate<input name=g></label><label>Day<select><option>1</select></label>"
            "<label>What you saw<textarea></textarea></label></p>"
        ),
        "Gate Day What you saw",
    ),
    "the footer of a quotation names its source": (
        "<blockquote><p>Open it.</p><footer>A. Warden, 1911</footer></blockquote>",
        "> Open it.\n\n> A. Warden, 1911",
    ),
    "a button that opens an answer is its question": (
        '<h3><button aria-expanded="false">Who opens it?</button></h3><p>The warden.</p>',
        "### Who opens it?\n\nThe warden.",
    ),
    "the labels of tabs are text, a button to copy is not": (
        (
            '<div><button role="tab">npm</button> <button role="tab">yarn</button></div>'
            "<pre>npm i gate</pre><p><button>Copy</button>Then start it.</p>"
        ),
        "npm yarn\n\n```\nnpm i gate\n```\n\nThen start it.",
    ),
}


@pytest.mark.parametrize(("html", "markdown"), FRAGMENTS.values(), ids=FRAGMENTS.keys())
def test_a_fragment_becomes_this_markdown(read_page: Read, html: str, markdown: str) -> None:
    _, text = read_page(article(html))
    assert f"\n{markdown}\n" in text


def test_content_is_kept_and_chrome_is_dropped(read_page: Read) -> None:
    extracted, text = read_page(article(""))
    assert text.count("reservoir") == 6
    assert "menu" not in text
    assert "Imprint" not in text
    assert extracted.facts.title == "Gate works"
    assert extracted.facts.language == "en"
    assert extracted.preview.text == ""  # it begins with the text


def test_a_table_with_heads_inside_of_the_content_is_kept(read_page: Read) -> None:
    facts = "".join(f"<tr><th>Fact {n}</th><td>{n}</td></tr>" for n in range(5))
    box = f'<div class="module-header"><table class="caption">{facts}</table></div>'
    _, text = read_page(article(f"{box}{f'<p>{PROSE}</p>' * 9}"))
    assert "| Fact 4 | 4 |" in text


def test_a_page_that_is_a_form_is_content(read_page: Read) -> None:
    _, text = read_page(
        "<nav><a href=/>Home menu</a></nav><form><h1>Report a fault</h1>"
        "<p>Tell us which gate it is and what you saw.</p><label>Your name</label></form>"
    )
    assert text == ("# Report a fault\n\nTell us which gate it is and what you saw.\n\nYour name\n")


def test_a_short_page_is_not_cut_to_less(read_page: Read) -> None:
    items = "".join(f"<li><a href=/{n}>Gate {n} of the upper river</a></li>" for n in range(30))
    _, text = read_page(f"<nav><a href=/>Home menu</a></nav><h1>All gates</h1><ul>{items}</ul>")
    assert "Gate 29" in text
    assert "Home menu" not in text


def test_a_card_keeps_its_price(read_page: Read) -> None:
    cards = "".join(
        f'<a class=card href=/{n}><h3>Gate model {n}</h3><p>{PROSE}</p><div class="footer meta">'
        f"<p>{n}9 €</p></div></a>"
        for n in range(9)
    )
    _, text = read_page(article(f"<div class=grid>{cards}</div>"))
    assert "Gate model 8" in text
    assert "89 €" in text


def test_posts_of_a_thread_keep_author_and_date(read_page: Read) -> None:
    posts = "".join(
        f'<div class="post"><div class="post-meta sidebar"><a class="username" href=/u{n}>'
        f'Warden {n}</a></div><div class="footer"><time>2026-11-{n + 10}</time></div>'
        f"<p>{PROSE}</p></div>"
        for n in range(8)
    )
    _, text = read_page(f"<nav><a href=/>Home menu</a></nav><h1>Which gate?</h1>{posts}")
    assert text.count("Warden") == 8
    assert text.count("2026-11-1") == 8


@pytest.mark.parametrize(("name", "is_kept"), [("t-navbar", False), ("t-canvas", True)])
def test_what_a_class_calls_navigation_is_left_out(
    read_page: Read, name: str, is_kept: bool
) -> None:
    rows = "".join(f"<tr><td><a href=/{n}>Gate number {n}</a></td></tr>" for n in range(9))
    _, text = read_page(
        f"<div id=content class=text><h1>Gates</h1><p>{PROSE}</p><div class={name}><table><tr>"
        f"<th>See</th></tr>{rows}</table></div><p>{PROSE}</p><p>{PROSE}</p></div>"
    )
    assert ("Gate number 3" in text) is is_kept
    assert text.count(PROSE.strip()) == 3


def test_a_menu_in_a_cell_beside_the_text_is_left_out(read_page: Read) -> None:
    menu = (
        f"<b>Gates</b><ul>{''.join(f'<li><a href=/{n}>Gate {n}</a></li>' for n in range(9))}</ul>"
    )
    for cell, count in ((menu, 0), (f"<h2>Gates</h2>{menu}", 9)):
        _, text = read_page(f"<table><tr><td>{cell}</td><td><p>{PROSE}</p></td></tr></table>")
        assert text.count("](https://example.org/") == count
        assert PROSE.strip() in text


def test_pages_before_and_after_are_left_out_of_a_page(read_page: Read) -> None:
    links = "<td><a href=p>Prev</a></td><td>Part II. Gates</td><td><a href=n>Next</a></td>"
    bar = f"<table><tr><th colspan=3>Gate works</th></tr><tr>{links}</tr></table>"
    _, text = read_page(f"<body><div class=navheader>{bar}</div>{article('')}")
    assert text.startswith("# Gate works\n")
    assert "Prev" not in text


def test_the_footer_of_a_short_old_page_is_left_out(read_page: Read) -> None:
    foot = f"<div class=footer><p>Set by hand. {PROSE}</p></div>"
    _, text = read_page(f"<h1>Gates</h1><p>Closed on Monday, open on all other days.</p>{foot}")
    assert text == "# Gates\n\nClosed on Monday, open on all other days.\n"
    _, text = read_page(foot)
    assert "Set by hand" in text  # the page has nothing else


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("<div class=post><p>{0}</p></div><div class=post><blockquote><p>{0}</p></blockquote>", 1),
        ("<div><p>{0}</p></div><pre>open()</pre><div><section><p>{0}</p></section></div>", 2),
        ("<p>{0}</p><p>And again:</p><p>{0}</p>", 2),
        ("<div><p>{0}</p></div><section><h2>North gate</h2><div><p>{0}</p></div></section>", 2),
    ],
    ids=["a quoted post", "documentation", "a refrain", "under another heading"],
)
def test_what_stands_above_is_not_given_again(read_page: Read, page: str, count: int) -> None:
    said = "Open the lower gate as soon as the mark is reached, and tell the wardens of it."
    _, text = read_page(f"<main><h1>Gates</h1>{page.format(said)}</main>")
    assert text.count(said) == count


def test_a_short_copy_is_given_again(read_page: Read) -> None:
    _, text = read_page("<h1>Gates</h1>" + "<div><p>Open</p></div><div><p>Closed</p></div>" * 2)
    assert text.count("Open") == text.count("Closed") == 2


def test_the_lead_below_the_title_of_documentation_and_code_at_its_end_are_kept() -> None:
    lead = "".join(f"<p>Part {n} of what the module is for and who may use it.</p>" for n in "abcd")
    rest = f"<h3>open()</h3><p>{PROSE}</p><pre>open()</pre>"
    end = "<h4>Another way</h4><div><div><pre>open(1)</pre></div></div>"
    blocks = _blocks.cut(_tree.parse(f"<main><h1>gates</h1>{lead}{rest}{end}</main>"))
    keep = [block.words in {"gates", "open()", PROSE.strip()} for block in blocks]
    _repairs.fill_gaps(blocks, keep)
    assert all(keep)


@pytest.mark.parametrize(("kind", "is_kept"), [("", True), ("article", False)])
def test_a_page_that_says_what_it_is_keeps_less(
    monkeypatch: pytest.MonkeyPatch, kind: str, is_kept: bool
) -> None:
    text = "".join(f"<p>{n} {PROSE}</p>" for n in range(8))
    blocks = _blocks.cut(_tree.parse(f"{text}<div>8 {PROSE}</div>"))
    monkeypatch.setattr(_content, "log_odds", Mock(return_value=[2.0] * 8 + [0.0]))
    assert _content.content(blocks, kind) == [True] * 8 + [is_kept]


def test_bodies_of_posts_are_kept_together_and_signatures_left_out_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    post = "<article><p>{0} {1}</p><div class=signature>Warden {0} of the gate</div></article>"
    page = _tree.parse("".join(post.format(n, PROSE) for n in range(4)))
    scores = [3.0, -3.0, 3.0, 0.5, -1.0, -3.0, 3.0, -3.0]
    monkeypatch.setattr(_content, "log_odds", Mock(return_value=scores))
    assert _content.content(_blocks.cut(page)) == [True, False] * 4


@pytest.mark.parametrize(
    ("row", "is_kept"),
    [
        ("<p>Defined in Gates</p><p>lift :: Gate {0} -> {0}</p><p>lower :: {0} -> Gate {0}</p>", 0),
        ("<p>The key {0} {1} {2} {3} opens {4} {5} {6}</p>", 1),
    ],
    ids=["instances", "answers"],
)
def test_folds_that_say_the_same_are_left_out_and_answers_kept(
    read_page: Read, row: str, is_kept: int
) -> None:
    words = [[f"w{number}x{place}" for place in range(7)] for number in range(40)]
    folds = "".join(
        f"<tr><td>Gate of {w[0]}</td></tr><tr><td colspan=2><details><summary>More</summary>"
        f"{row.format(*w)}</details></td></tr>"
        for w in words
    )
    _, text = read_page(
        f"<h1>Gates</h1><p>{PROSE}</p><h2>All</h2><details open><table>{folds}</table></details>"
    )
    assert text.count("Gate of") == 40
    assert "lower ::" not in text
    assert text.count("The key") == 40 * is_kept
    assert PROSE[:40] in text


@pytest.mark.parametrize(
    ("name", "is_kept"), [("post pinned", True), ("post advertisement", False), ("pinned", False)]
)
def test_a_post_whose_sisters_are_kept_is_kept(read_page: Read, name: str, is_kept: bool) -> None:
    posts = "".join(
        f"<div class=post><time>09:{n}0</time><p>Gusts of {n}0 km/h at the gate.</p></div>"
        for n in range(12)
    )
    last = "<time>14:20</time><p>The ferry is cancelled.</p><p class=share>Share it</p>"
    menu = "".join(f"<li><a href=/{n}>Section {n} of the menu</a></li>" for n in range(14))
    _, text = read_page(
        f"<header><nav><ul>{menu}</ul></nav></header><main><article><h1>Live</h1>{posts}"
        f"<div class='{name}'>{last}</div></article><aside><ul>{menu}</ul></aside></main>"
    )
    assert text.count("Gusts") == 12
    assert ("14:20\n\nThe ferry is cancelled." in text) is is_kept
    assert "Share" not in text
    assert "menu" not in text


def test_a_preview_does_not_begin_with_a_list_of_links(read_page: Read) -> None:
    contents = "".join(f"<li><a href=#s{n}>Section {n}</a></li>" for n in range(9))
    body = f"<main><h1>Guide</h1><ul>{contents}</ul><h2 id=s0>Section 0</h2>{f'<p>{PROSE}</p>' * 9}"
    extracted, text = read_page(body)
    assert text.startswith("# Guide\n\n- [Section 0](#s0)\n")
    assert extracted.preview.text.startswith("# Guide\n\n## Section 0\n\nThe reservoir")


PREVIEWS = {
    "the end of a table of contents": (
        "<ul><li><a href=/1>The basics</a></li></ul><h1>Gate works</h1>"
    ),
    "a notice above the title": (
        "<p>This manual is for an older version of the gate and of its wardens.</p>"
        "<h1>Gate works</h1>"
    ),
    "a notice beneath the title": (
        "<h1>Gate works</h1><p>You are reading the documentation of a version of the gate that is "
        "old.</p>"
    ),
    "links to the next page and to the last": (
        "<h1>Gate works</h1><ul><li><a href=/1>Previous</a><li><a href=/2>Next</a></ul>"
    ),
    "links in one paragraph": (
        "<h1>Gate works</h1><p><a href=#a>Low gate</a><br><a href=#b>High gate</a></p>"
    ),
    "the name of the site": "<h1>Handbook</h1><p>Contents</p><h1>Gate works</h1>",
}


@pytest.mark.parametrize("above", PREVIEWS.values(), ids=PREVIEWS.keys())
def test_a_preview_begins_with_the_title_and_the_text(read_page: Read, above: str) -> None:
    extracted, text = read_page(
        f"<title>Gate works \u2014 Handbook</title><main>{above}<p>{PROSE}</p></main>"
    )
    assert not text.startswith("# Gate works\n\nThe reservoir")
    assert extracted.preview.text.startswith("# Gate works\n\nThe reservoir")


def test_a_preview_keeps_text_above_a_heading_that_the_page_is_named_after(read_page: Read) -> None:
    extracted, text = read_page(
        f"<title>Opening - Gates</title><p>{PROSE * 3}</p><h1>Opening</h1><p>{PROSE}</p>"
    )
    assert text.startswith("The reservoir")
    assert extracted.preview.text == ""


def test_a_page_of_links_alone_is_previewed_as_it_is(read_page: Read) -> None:
    links = "".join(f"<li><a href=/{n}>Gate number {n} of the river</a></li>" for n in range(40))
    extracted, text = read_page(f"<title>Gates</title><main><h1>Gates</h1><ul>{links}</ul></main>")
    assert text.startswith("# Gates\n\n- [Gate number 0")
    assert extracted.preview.text == ""


def test_the_outline_gives_the_lines_of_the_headings_in_each_part(save: Save) -> None:
    body = "".join(f"<h2>Section {n}</h2><p>{PROSE}</p>" for n in range(600))
    source = save(article(body).encode())
    extracted = handler_named("html").extract(source, Hints(), ExtractLimits())
    parts = list(extracted.parts or ())
    assert len(parts) > 2
    for part in parts:
        lines = part.text.split("\n")
        assert part.text.endswith("\n")
        assert all(
            lines[heading.start - 1] == f"{'#' * heading.level} {heading.title}"
            for heading in part.headings
        )
    assert sum(len(part.headings) for part in parts) == 601


def test_where_too_much_would_be_repeated_marks_keep_the_columns(read: Read) -> None:
    spanning = f"<td rowspan=300>{'gate ' * 16}" * 5
    text = read("html", f"<table><tr>{spanning}<td>0{'<tr><td>1' * 299}</table>".encode())[1]
    rows = [line.split(" | ") for line in text.split("\n") if line.endswith("1 |")]
    assert {len(row) for row in rows} == {6}
    assert len(rows) == 299
    assert rows[-1][0] == f"| {DITTO}"
    assert len(text) < 10 * 300 * len("<tr><td>1")
