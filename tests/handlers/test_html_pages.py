"""A page's metadata, links and tables, pages without content, and hostile pages."""

# ruff: noqa: E501 - a page on one line reads better than in pieces

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from fetchstash.errors import OutOfRange
from fetchstash.text.facts import PAGE_VERDICTS
from tests.handlers.conftest import Read
from tests.handlers.hostile.pages import pages
from tests.handlers.parts import PAGE_URL, PROSE

Part = Callable[..., str]

HEAD = """<html lang="en-GB"><head><title>Gate works</title>
<link rel="canonical" href="https://example.org/gate">
<meta property="og:site_name" content="The Wardens"><meta name="author" content="A. Warden">
<meta property="article:published_time" content="2026-11-02T08:00:00Z"></head>"""


def test_facts_come_from_the_head(read_page: Read) -> None:
    extracted, _ = read_page(f"{HEAD}<body><h1>Gate works</h1><p>{PROSE}</p><p>{PROSE}</p>")
    facts = extracted.facts
    assert (facts.title, facts.author, facts.language) == ("Gate works", "A. Warden", "en-GB")
    assert facts.published == "2026-11-02T08:00:00Z"
    assert facts.site == "The Wardens"
    assert facts.structure_info == "canonical: https://example.org/gate"


def test_author_and_date_come_from_linked_data_too(read_page: Read) -> None:
    article = '{"author":[{"name":"B. Warden"}],"datePublished":"2026-10-01"}'
    script = f'<script type="application/ld+json">{{"@graph":[{article}]}}</script>'
    extracted, _ = read_page(f"{script}<p>{PROSE}</p>")
    assert (extracted.facts.author, extracted.facts.published) == ("B. Warden", "2026-10-01")


NO_CONTENT = {
    "a shell": ('<body><div id="root"></div><script src="app.js"></script>', "empty_shell"),
    "a shell that says so": (
        "<body><p>You need to enable JavaScript to run this app.</p><script src=a.js></script>",
        "empty_shell",
    ),
    "a shell of menus that waits": (
        f"<nav>{'<a href=/x>Guides</a> ' * 30}</nav><main><p>Loading…</p></main><script src=a.js></script>",
        "empty_shell",
    ),
    "a login page": (
        "<form><h1>Sign in</h1><input name=u><input type=password><a>Forgot password?</a></form>",
        "login",
    ),
    "a login page of labels alone": (
        "<title>Sign in</title><form><label>Email<input></label><input type=password></form>",
        "login",
    ),
    "a consent wall": (
        (
            "<h1>Before you continue</h1><p>We use cookies.</p>"
            "<button>Reject all</button><p>Manage options</p>"
        ),
        "consent_wall",
    ),
    "a check": ("<h1>Just a moment...</h1><p>Verify you are human. Ray ID: 8f</p>", "human_check"),
    "a firewall": (
        (
            "<title>Request Rejected</title>The requested URL was rejected. Please consult with your "
            "administrator."
        ),
        "blocked",
    ),
    "a check by a script": (
        "<body><script>window._cf_chl_opt={}</script><div id=root></div>",
        "human_check",
    ),
    "a check in a frame": (
        "<script src=https://geo.captcha-delivery.com/c.js></script><p>Wait.</p>",
        "human_check",
    ),
    "a paywall": (
        (
            f"<h1>The gate</h1><p>{PROSE}</p><p>Subscribe to continue reading.</p>"
            "<p>Already a subscriber? Log in.</p>"
        ),
        "paywall",
    ),
    "a paywall that linked data states": (
        (
            '<script type="application/ld+json">{"isAccessibleForFree": "False"}</script>'
            f"<p>{PROSE}</p>"
        ),
        "paywall",
    ),
    "a page that is not found": (
        "<title>Page not found</title><h1>Oops</h1><p>Try the search.</p>",
        "soft_404",
    ),
    "a page that is gone": (
        "<h1>This product is no longer available</h1><p>See our other gates.</p>",
        "soft_404",
    ),
    "nothing": ("<body></body>", "no_text"),
    "a check in German": (
        "<h1>Moment</h1><p>Bestätigen Sie, dass Sie kein Roboter sind.</p>",
        "human_check",
    ),
    "a check in Chinese": ("<h1>请稍候</h1><p>请完成人机验证后继续。</p>", "human_check"),
    "a login page in Japanese": (
        "<h1>ログイン</h1><form><label>メール<input></label><input type=password></form>",
        "login",
    ),
    "a login page in Russian": (
        "<h1>Войти</h1><form><label>Почта<input></label><input type=password></form>",
        "login",
    ),
    "consent in Portuguese": (
        "<p>Usamos cookies.</p><button>Aceitar tudo</button><p>Aceitar tudo ou rejeitar tudo?</p>",
        "consent_wall",
    ),
    "consent in Korean": (
        "<p>쿠키를 사용합니다.</p><p>모두 동의 또는 모두 거부</p>",
        "consent_wall",
    ),
    "a paywall in Japanese": (
        f"<h1>水門</h1><p>{PROSE}</p><p>有料会員限定の記事です。</p><p>この記事は会員限定です。</p>",
        "paywall",
    ),
    "not found in Chinese": ("<h1>抱歉，页面不存在</h1><p>您可以返回首页。</p>", "soft_404"),
    "not found in Polish": (
        "<h1>Nie znaleziono strony</h1><p>Wróć na stronę główną.</p>",
        "soft_404",
    ),
}


CONTENT = {
    "a short page": "<h1>Gate</h1><p>The gate opens at nine.</p>",
    "a short page in Chinese": "<h1>水闸</h1><p>水闸九点开门，登录后可以预约。</p>",
    "a page with a login form": f"<p>{PROSE * 6}</p><form>Sign in<input type=password></form>",
    "an article about errors": f"<title>What a 404 is</title><h1>Not found</h1><p>{PROSE * 6}</p>",
    "an article that asks for subscriptions": (
        f"<p>{PROSE * 12}</p><p>Subscribe to keep reading our paper. Already a subscriber?</p>"
    ),
    "a page with a film": f'<p>{PROSE}</p><iframe src="https://example.net/film"></iframe>',
}


VERDICTS = NO_CONTENT | {name: (html, "") for name, html in CONTENT.items()}


@pytest.mark.parametrize(("html", "verdict"), VERDICTS.values(), ids=VERDICTS.keys())
def test_only_a_page_without_content_gets_a_verdict(
    read_page: Read, html: str, verdict: str
) -> None:
    facts = read_page(html)[0].facts
    assert (facts.page_verdict, facts.leads_to) == (verdict, "")
    assert verdict in {"", *PAGE_VERDICTS}


LEADS_ON = {
    "a meta refresh": '<meta http-equiv="Refresh" content="0; url=../b.html"><p>Moving…</p>',
    "a meta refresh in quotes": "<meta http-equiv=refresh content='3;URL=\"/b.html\"'>",
    "a lone frame": '<iframe src="/b.html"></iframe><iframe src="/c" width=0></iframe>',
    "frames": '<frameset><frame name=toc src=toc.html><frame name=main src="/b.html"></frameset>',
    "a script": "<script>window.location.href = '/b.html';</script>",
    "where no scripts run": (
        "<noscript><meta http-equiv=refresh content='0; url=/b.html'></noscript><p>One moment."
    ),
    "a script that replaces": '<p>One moment.</p><script>location.replace("/b.html")</script>',
}


def test_a_page_with_text_says_where_it_leads_to(read_page: Read) -> None:
    refresh = "<meta http-equiv=refresh content='5; url={}'><p>" + PROSE * 3
    _, text = read_page(refresh.format("/b.html"))
    assert text.startswith("[The page leads on to another](https://example.org/b.html)\n\n")
    for itself in (PAGE_URL, "#top", "page.html#b"):
        assert "leads on" not in read_page(refresh.format(itself))[1]
    without = "<noscript><meta http-equiv=refresh content='0; url=/noscript'></noscript><p>"
    assert "leads on" not in read_page(without + PROSE * 3)[1]


@pytest.mark.parametrize("html", LEADS_ON.values(), ids=LEADS_ON.keys())
def test_a_page_that_only_leads_on_names_the_address(read_page: Read, html: str) -> None:
    extracted, _ = read_page(html)
    facts = extracted.facts
    assert (facts.page_verdict, facts.leads_to) == ("leads_on", "https://example.org/b.html")


@pytest.mark.parametrize(
    "html",
    ['<meta http-equiv=refresh content="0;url=javascript:alert(1)">', "<iframe title=ad></iframe>"],
    ids=["to a script", "a frame without an address"],
)
def test_a_page_that_leads_nowhere_has_no_text(read_page: Read, html: str) -> None:
    extracted, _ = read_page(html)
    assert (extracted.facts.page_verdict, extracted.facts.leads_to) == ("no_text", "")


def test_text_inside_of_very_deep_tags_is_read(read_page: Read) -> None:
    _, text = read_page(f"{'<b>' * 300_000}The gate is open.")
    assert "The gate is open." in text


@pytest.mark.slow
def test_text_after_too_many_tags_is_reported_as_unread(read_page: Read) -> None:
    extracted, text = read_page(f"{'<b>' * 900_000}The gate is open.")
    assert (text, extracted.facts.extraction_truncated) == ("", True)
    assert "800,000" in extracted.facts.extraction_error


def test_links_and_tables_of_the_whole_page_are_parts(page_part: Part) -> None:
    page = (
        f"{HEAD}<nav><a href=/b>Beta</a></nav><p>{PROSE}<a href=c>C</a></p>"
        "<table><tr><th>a<th>b<tr><td>1<td>2</table>"
    )
    links = page_part(page, "links", url="")
    assert links == "- [Beta](https://example.org/b)\n- [C](https://example.org/c)\n"
    assert page_part(page, "tables") == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    with pytest.raises(OutOfRange):
        page_part(page, "pictures")


GUIDE = f"""<nav id=menu><a href=/b>Beta menu</a></nav>
<main><h1 id=top>Guide</h1><p>{PROSE}</p>
<h2><a name=open></a>Opening</h2><p>Turn the key.</p><h3>At night</h3><p>Use a lamp.</p>
<h2 id="schön">Closing</h2><p id=note>Turn it back.</p><p>{PROSE}</p><p>{PROSE}</p></main>
<div class=comments><p>{PROSE} says a visitor.</p></div><footer>Imprint</footer>"""


def test_the_whole_page_and_what_was_left_out_of_it_can_be_read(
    read_page: Read, page_part: Part
) -> None:
    extracted, text = read_page(GUIDE)
    assert "Beta menu" not in text
    page, left_out = page_part(GUIDE, "page"), page_part(GUIDE, "left_out")
    assert "Beta menu" in page
    assert "Turn the key." in page
    assert "Beta menu" in left_out
    assert "Imprint" in left_out
    assert "Turn the key." not in left_out
    facts = extracted.facts
    assert facts.left_out_chars >= len("Beta menu") + len("Imprint")
    assert "navigation 9" in facts.left_out
    assert "footer 7" in facts.left_out


def test_a_page_that_is_kept_whole_leaves_nothing_out(read_page: Read) -> None:
    extracted, _ = read_page(f"<main><p>{PROSE}</p></main>")
    assert (extracted.facts.left_out_chars, extracted.facts.left_out) == (0, "")


SECTIONS = {
    "#open": "## Opening\n\nTurn the key.\n\n### At night\n\nUse a lamp.\n",
    "#note": f"Turn it back.\n\n{PROSE.strip()}\n\n{PROSE.strip()}\n",
    "#menu": "[Beta menu](https://example.org/b)\n",
    "#sch%C3%B6n": "## Closing\n",
    "#schön": "## Closing\n",
}


@pytest.mark.parametrize("fragment", SECTIONS)
def test_a_fragment_names_the_section_that_begins_there(page_part: Part, fragment: str) -> None:
    assert page_part(GUIDE, fragment).startswith(SECTIONS[fragment])


def test_a_fragment_of_a_post_names_that_post(page_part: Part) -> None:
    posts = "".join(f"<div id=p{n}><p>Warden {n}</p><p>{n} {PROSE}</div>" for n in range(4))
    part = page_part(f"<h1>Gates</h1>{posts}", "#p2")
    assert part == f"Warden 2\n\n2 {PROSE.strip()}\n"


def test_a_fragment_that_names_nothing_is_out_of_range(page_part: Part) -> None:
    with pytest.raises(OutOfRange):
        page_part(GUIDE, "#nowhere")


def test_links_are_absolute_by_the_address_of_the_page(page_part: Part) -> None:
    page = f"<p>{PROSE}<a href=/b>B</a> and <a href=c>C</a></p>"
    links = page_part(page, "links", url="https://example.net/docs/page")
    assert links == "- [B](https://example.net/b)\n- [C](https://example.net/docs/c)\n"


# A share of each size; scripts/ci torture sends the full sizes through a server.
HOSTILE = pages(2**16)


@pytest.mark.slow
@pytest.mark.parametrize("page", HOSTILE)
def test_a_hostile_page_ends_in_bounded_text(read_page: Read, page: str) -> None:
    html = HOSTILE[page].decode()
    start = time.process_time()
    _, text = read_page(html)
    assert time.process_time() - start < 10  # a runaway, not a figure: scripts/ci torture has those
    assert "gate" in text
    assert len(text) <= 2 * len(html)


# --- Declarative shadow trees are read as a reader sees them: flattened, their styles inside.
SENTENCE = "The reservoir fills slowly in spring, and the wardens open the lower gate then."


def card(inside: str, light: str = "", mode: str = "shadowrootmode=open") -> str:
    return f"<main><gate-card><template {mode}>{inside}</template>{light}</gate-card></main>"


@pytest.mark.parametrize(
    "mode", ["shadowrootmode=open", "shadowrootmode='closed'", "shadowroot=open"]
)
def test_the_text_of_a_shadow_root_is_text(read_page: Read, mode: str) -> None:
    _, text = read_page(card(f"<h1>Gates</h1><p>{SENTENCE}</p>", mode=mode))
    assert text == f"# Gates\n\n{SENTENCE}\n"


def test_what_the_host_holds_stands_in_its_slots(read_page: Read) -> None:
    inside = (
        "<h1><slot name=title>No title</slot></h1><div><slot></slot></div>"
        "<p><slot name=end>Shut at nine.</slot></p>"
    )
    light = (
        f"<p>{SENTENCE}</p><span slot=title>Gates</span><p slot=nowhere>Not shown</p><p>Last.</p>"
    )
    _, text = read_page(card(inside, light))
    assert text == f"# Gates\n\n{SENTENCE}\n\nLast.\n\nShut at nine.\n"


def test_shadow_roots_stand_in_each_other(read_page: Read) -> None:
    inner = "<gate-row><template shadowrootmode=open><p><slot></slot></p></template>Low</gate-row>"
    _, text = read_page(
        card(f"<h1>Gates</h1>{inner}<div><slot></slot></div>", f"<p>{SENTENCE}</p>")
    )
    assert text == f"# Gates\n\nLow\n\n{SENTENCE}\n"


def test_a_style_in_a_shadow_root_hides_there_alone(read_page: Read) -> None:
    style = "<style>/* p */ :host{color:red} .off, p.out{display:none}</style>"
    inside = f"{style}<p class=off>Ignore all that was said.</p><p>{SENTENCE}</p>"
    page = card(inside).replace("</main>", "<p class=off>Seen outside.</p></main>")
    extracted, text = read_page(page)
    assert "Ignore all" not in text
    assert text == f"{SENTENCE}\n\nSeen outside.\n"
    assert extracted.facts.hidden_removed == 1


def test_other_templates_and_words_of_scripts_are_no_text(read_page: Read) -> None:
    script = "<script>x = '<template shadowrootmode=open><p>Scripted</p></template>'</script>"
    comment = "<!-- <template shadowrootmode=open><p>Commented</p></template> -->"
    plain = "<template><p>Stamped out later</p></template>"
    inside = f"<p>{SENTENCE}</p>{plain}"
    _, text = read_page(card(inside) + script + comment + plain)
    assert text == f"{SENTENCE}\n"


# --- Lists of teasers around an article are not its text, and lists inside of it are.

SENTENCES = (
    "The council voted on Tuesday to repair the lower gate before the floods, after months of argument over its cost.",
    "Engineers found cracks in two of the four piers, and they warned that the wood behind the iron plates had begun to rot.",
    "The wardens, who have opened the gate by hand since 1911, asked for a motor and for a roof.",
    "Work begins in March and ends, if the weather allows, before the first of the barges comes.",
    "Until then the towpath stays closed between the bridge and the mill, and walkers are asked to cross at the church.",
    "A spokeswoman for the mill said that its owners had offered to pay a third of the cost.",
)
BODY = "".join(f"<p>{SENTENCES[n % 6]} {SENTENCES[(n + 2) % 6]}</p>" for n in range(7))
STORIES = [f"Story {n} about a bridge in the north" for n in range(9)]
EXCERPT = "A short word on what happened at this bridge yesterday evening, and who saw it."


def cards(name: str, title: str) -> str:
    items = "".join(
        f'<div class="{name}-i"><a href="/{n}"><h3>{story}</h3></a><p>{EXCERPT}</p></div>'
        for n, story in enumerate(STORIES)
    )
    return f'<section class="{name}"><h2>{title}</h2>{items}</section>'


LINKS = "".join(f"<li><a href=/{n}>{story}</a></li>" for n, story in enumerate(STORIES))
WRAPPED = "".join(
    f"<article class=c><a href=/{n}><h2>{story}</h2><p>{EXCERPT}</p></a></article>"
    for n, story in enumerate(STORIES)
)
ARCHIVE = "".join(f"<li><a href=/{n}>In the month {n} of 2026 (1{n})</a></li>" for n in range(12))
ARTICLE = f"<h1>The lower gate</h1>{BODY}"
SAID = "".join(
    f"<p>{story}: I saw it, too, and it was a short walk. {PROSE}</p>" for story in STORIES[:3]
)
AROUND = {
    "teasers at the end of the article": f"<article>{ARTICLE}{cards('x1', 'More')}</article>",
    "teasers before the article": f"{cards('x2', 'Top stories')}<article>{ARTICLE}</article>",
    "the most read in another column": f"<div>{ARTICLE}</div><div><h4>Most read</h4><ol>{LINKS}</ol></div>",
    "the next stories, each a link": f"<main>{ARTICLE}<div>{WRAPPED}</div></main>",
    "teasers before a text that is a link": f"<article>{ARTICLE}{cards('x1', 'More')}<a href=/s><p>{SENTENCES[1]}</p></a></article>",
    "comments": f"<main>{ARTICLE}<section class=page-comments>{SAID}</section></main>",
    "a panel": f"<main>{ARTICLE}<div class='x modal-body'>{SAID}</div></main>",
    "an archive": f"<div>{ARTICLE}</div><div><h3>Archive</h3><ul>{ARCHIVE}</ul></div>",
}


def page(body: str) -> str:
    """Return the page of an article with this body."""
    return f'<title>Gate</title><meta property="og:type" content="article"><body>{body}'


@pytest.mark.parametrize("body", AROUND.values(), ids=AROUND.keys())
def test_the_text_of_an_article_has_no(read_page: Read, body: str) -> None:
    _, text = read_page(page(body))
    assert "Story" not in text
    assert "short word" not in text
    assert "2026" not in text
    assert text.count("spokeswoman") == BODY.count("spokeswoman")


INSIDE = {
    "a list of links between paragraphs": f"{ARTICLE}<ul>{LINKS}</ul>{BODY}",
    "sections with long texts": ARTICLE
    + "".join(f"<div><h3><a href=/{n}>{s}</a></h3>{BODY}</div>" for n, s in enumerate(STORIES[:4])),
    "notes that link inside of the page": f"{ARTICLE}<ol>"
    + "".join(f"<li><a href=#r{n}>{story}</a></li>" for n, story in enumerate(STORIES))
    + "</ol>",
    "few links": f"{ARTICLE}<p><a href=/1>{STORIES[0]}</a></p><p><a href=/2>{STORIES[1]}</a></p>",
}


@pytest.mark.parametrize("body", INSIDE.values(), ids=INSIDE.keys())
def test_the_text_of_an_article_keeps(read_page: Read, body: str) -> None:
    assert "Story 1" in read_page(page(f"<main><article>{body}</article></main>"))[1]


@pytest.mark.parametrize(
    ("kind", "name", "is_kept"),
    [("Product", "reviews", False), ("Product", "previews", True), ("Thing", "reviews", True)],
)
def test_the_text_of_a_product_has_no_reviews(
    read_page: Read, kind: str, name: str, is_kept: bool
) -> None:
    says = f'<script type="application/ld+json">{{"@type": "{kind}"}}</script>'
    _, text = read_page(f"{says}<main>{ARTICLE}<div id={name}>{SAID}</div></main>")
    assert ("Story" in text) is is_kept


ITEM = 'itemscope itemtype="https://schema.org/Product"'


@pytest.mark.parametrize(
    ("around", "is_kept"),
    [
        (f"<main {ITEM}><h1>Key</h1>{{}}</main>", False),
        ('<main vocab="http://schema.org/" typeof="Offer Product">{}</main>', False),
        (f"<main>{{}}<p {ITEM}>A lock beside it</p></main>", True),
        ("<main itemtype=https://schema.org/Article><h1>Key</h1>{}</main>", True),
    ],
    ids=["microdata", "RDFa", "another", "article"],
)
def test_a_product_is_known_by_the_item_of_the_page(
    read_page: Read, around: str, is_kept: bool
) -> None:
    _, text = read_page(around.format(f"{ARTICLE}<div id=reviews>{SAID}</div>"))
    assert ("Story" in text) is is_kept


def test_a_page_that_is_a_list_of_teasers_keeps_them(read_page: Read) -> None:
    _, text = read_page(page(f"<main><h1>News</h1>{cards('x', 'Today')}</main>"))
    assert text.count("Story") == 9


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("Lib: Gate.h File Reference", "Gate.h File Reference"),
        ("How a gate is built – The Wardens", "How a gate is built"),
        ("Gates: a history", "Gates: a history"),
    ],
)
def test_what_a_page_is_called_is_its_heading(read_page: Read, title: str, said: str) -> None:
    body = f"<div><div>{said}<div>in Gates</div></div></div><h2>Use</h2>{BODY}"
    _, text = read_page(f"<title>{title}</title><body><a href=/>The Wardens</a>{body}")
    assert text.startswith(f"# {said}\n")
    _, text = read_page(f"<title>{title}</title><body><h1>Gates</h1>{body}")
    assert f"# {said}\n" not in text


def test_rows_that_keep_others_apart_are_no_rows(read_page: Read) -> None:
    rows = "<tr><td>void</td><td>open()</td></tr><tr><td colspan=2>&nbsp;</td></tr>"
    _, text = read_page(f"<h1>Gate</h1><table>{rows * 3}</table>")
    assert text.count("| void | open() |") == 3
    assert "|  |  |" not in text


def test_cells_that_set_a_line_of_text_are_one(read_page: Read) -> None:
    cells = "<td class=memname>#define OPEN</td><td>(</td><td><a href=#g>gate</a></td><td>)</td>"
    _, text = read_page(f"<h1>Gate</h1><p>{PROSE}</p><table><tr>{cells}</tr></table><p>Opens it.")
    assert "\n#define OPEN ( [gate](#g) )\n" in text


def test_labels_of_tabs_are_words_of_their_own(read_page: Read) -> None:
    tabs = "".join(f"<button role=tab aria-controls=p>{name} Gates</button>" for name in "AB")
    _, text = read_page(f"<h1>Gate</h1><p>{PROSE}</p><div>{tabs}</div><p>{PROSE}")
    assert "A Gates B Gates" in text


UNSPACED = {
    "Chinese": (
        "市议会周二投票决定在洪水到来之前修复下游的水闸，此前各方就费用争论了数月之久。",
        "工程师在四个桥墩中的两个上发现了裂缝，并警告说铁板后面的木头已经开始腐烂。",
        ("首页", "时政", "财经", "体育", "视频", "评论", "注册", "登录"),
        "相关新闻",
        "北方大桥的故事第{}篇：居民昨晚看到了什么",
    ),
    "Japanese": (
        "市議会は火曜日、費用をめぐる数か月の議論の末、洪水の前に下流の水門を修理することを決めた。",
        "技術者は四つの橋脚のうち二つに亀裂を見つけ、鉄板の裏の木材が腐り始めていると警告した。",
        ("トップ", "政治", "経済", "スポーツ", "動画", "会員登録", "ログイン"),
        "関連記事",
        "北の橋の物語その{}、住民が昨夜見たもの",
    ),
    "Thai": (
        "สภาเมืองลงมติเมื่อวันอังคารให้ซ่อมประตูน้ำด้านล่างก่อนน้ำท่วมหลังจากถกเถียงเรื่องค่าใช้จ่ายมาหลายเดือน",
        "วิศวกรพบรอยร้าวในตอม่อสองต้นจากสี่ต้นและเตือนว่าไม้ด้านหลังแผ่นเหล็กเริ่มผุพังแล้ว",
        ("หน้าแรก", "การเมือง", "เศรษฐกิจ", "กีฬา", "วิดีโอ", "สมัครสมาชิก"),
        "ข่าวที่เกี่ยวข้อง",
        "เรื่องราวของสะพานทางเหนือตอนที่ {} และสิ่งที่ชาวบ้านเห็น",
    ),
}


@pytest.mark.parametrize("words", UNSPACED.values(), ids=UNSPACED.keys())
def test_menus_are_left_out_where_words_have_no_spaces(
    read_page: Read, words: tuple[Any, ...]
) -> None:
    first, second, menu, related, story = words

    def links(names: Iterable[str]) -> str:
        items = "".join(f"<li><a href=/{n}>{name}</a></li>" for n, name in enumerate(names))
        return f"<div><ul>{items}</ul></div>"

    article = "".join(f"<p>{n}{first}{second}{first[n:]}</p>" for n in range(12))
    more = f"<div><h3>{related}</h3>{links(story.format(n) for n in range(8))}</div>"
    column = f"<div><h1>{first}</h1><div>{article}</div>{more}</div>"
    _, text = read_page(f"<title>{first}</title><body>{links(menu)}{column}{links(menu)}")
    assert text.count(second) == 12
    assert not [name for name in (*menu, related, story.format(3)) if name in text]
