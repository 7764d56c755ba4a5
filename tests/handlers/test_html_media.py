"""Pictures, films and sounds of a page leave a trace in its text and are listed."""

from collections.abc import Callable

import pytest

from fetchstash.errors import BadArgument, OutOfRange
from tests.handlers.conftest import Read
from tests.handlers.parts import PROSE

EMBEDDED = "https://www.youtube.com/embed/abc"


def page(body: str) -> str:
    """Return a page with this in its content."""
    return f"<main><h1>Gates</h1><p>{PROSE}</p>{body}<p>{PROSE}</p></main>"


SHOWN = {
    "a picture with a text of its own": (
        '<p>See <img src=gate.png alt="The low gate, open"> here.</p>',
        "See ![The low gate, open](https://example.org/guide/gate.png) here.",
    ),
    "a picture that is a paragraph": (
        "<p><img src=/gate.png alt='The low gate'></p>",
        "![The low gate](https://example.org/gate.png)",
    ),
    "a picture in a figure, which its caption describes": (
        "<figure><img src=/gate.png><figcaption>The low gate in May.</figcaption></figure>",
        "![](https://example.org/gate.png)\n\nThe low gate in May.",
    ),
    "a picture that a script loads late": (
        '<p><img src="data:image/gif;base64,R0l" data-src=/late.jpg alt="The low gate"></p>',
        "![The low gate](https://example.org/late.jpg)",
    ),
    "a picture that has only a set of sources": (
        '<p><img srcset="/small.jpg 400w, /large.jpg 800w" alt="The low gate"></p>',
        "![The low gate](https://example.org/small.jpg)",
    ),
    "a thumbnail that links to its picture": (
        '<p><a href="/full.jpg"><img src=/thumb.jpg alt="The low gate"></a></p>',
        "![The low gate](https://example.org/full.jpg)",
    ),
    "a picture of Wikipedia, which links to a page about it": (
        '<p><a href="/wiki/File:Gate.jpg"><img src=/250px-Gate.jpg alt="The low gate"></a></p>',
        "![The low gate](https://example.org/250px-Gate.jpg)",
    ),
    "a film with its poster": (
        '<video title="Opening" poster=/p.jpg><source src=/open.mp4>No film here.</video>',
        "[Video: Opening](https://example.org/open.mp4)",
    ),
    "a sound": (
        '<audio src=/bell.mp3 aria-label="The bell"></audio>',
        "[Audio: The bell](https://example.org/bell.mp3)",
    ),
    "a player of another site": (
        '<iframe src="https://www.youtube.com/embed/abc" title="How it opens"></iframe>',
        "[Video: How it opens](https://www.youtube.com/embed/abc)",
    ),
    "a film with the duration that linked data state": (
        (
            '<script type="application/ld+json">{"@type": "VideoObject", "name": "How it opens", '
            '"duration": "PT3M45S", "embedUrl": "https://www.youtube.com/embed/abc"}</script>'
            '<iframe src="https://www.youtube.com/embed/abc"></iframe>'
        ),
        "[Video: How it opens, 3:45](https://www.youtube.com/embed/abc)",
    ),
}


@pytest.mark.parametrize(("html", "markdown"), SHOWN.values(), ids=SHOWN.keys())
def test_the_text_shows(read_page: Read, html: str, markdown: str) -> None:
    assert f"\n{markdown}\n" in read_page(page(html))[1]


NOT_SHOWN = {
    "an icon by its size": "<p>A<img src=/i.png alt='The low gate' width=16 height=16></p>",
    "an icon by its name": "<p>A<img src=/i.png alt='The low gate' class='icon-gate'></p>",
    "a tracker": "<p>A<img src=https://ad.doubleclick.net/x alt='The low gate'></p>",
    "a decoration": "<p>A<img src=/line.png alt=''></p>",
    "a presentation": "<p>A<img src=/i.png alt='The low gate' role=presentation></p>",
    "a picture without a word on it": "<p>A<img src=/DSC_0012.jpg alt='DSC_0012.jpg'></p>",
    "a sign that opens a list": "<p><img src=/plus.png alt=+>A</p>",
    "a mark of an item": "<p><img src=/dot.png alt=' • '>A</p>",
    "data in the page": "<p>A<img src='data:image/png;base64,AA' alt='The low gate'></p>",
    "a thumbnail of what a link leads to": (
        "<a href=/story><img src=/thumb.jpg alt='The low gate'><h3>The gate is open</h3></a>"
    ),
    "a frame that plays nothing": "<iframe src=https://example.net/form title=Gate></iframe>",
    "a film of no address": "<video></video>",
}


@pytest.mark.parametrize("html", NOT_SHOWN.values(), ids=NOT_SHOWN.keys())
def test_the_text_does_not_show(read_page: Read, html: str) -> None:
    _, text = read_page(page(html))
    assert "![" not in text
    assert "Video" not in text


def test_a_picture_is_shown_once(read_page: Read) -> None:
    picture = '<p><img src=/gate.png alt="The low gate"></p>'
    assert read_page(page(picture * 3))[1].count("![") == 1


def test_a_picture_goes_with_the_text_it_stands_beside(read_page: Read) -> None:
    _, text = read_page(
        "<nav><p><img src=/n.png alt='Way home'></p><a href=/>Home menu</a></nav>"
        f"<main><p>{PROSE}</p><div><img src=/gate.png alt='The low gate'></div>"
        f"<p>{PROSE}</p><p>{PROSE}</p></main>"
    )
    assert "![The low gate]" in text
    assert "Way home" not in text


def test_a_film_that_only_linked_data_name_is_a_fact(read_page: Read) -> None:
    film = (
        '{"@type": "NewsArticle", "video": {"@type": "VideoObject", "name": "How it opens", '
        '"duration": "PT1H2M3S", "contentUrl": "https://example.org/f.mp4"}}'
    )
    extracted, _ = read_page(f"<script type=application/ld+json>{film}</script><p>{PROSE}</p>")
    line = "video: How it opens, 1:02:03, https://example.org/f.mp4"
    assert extracted.facts.structure_info == line


LISTED = f"""<p>{PROSE}</p><p><img src=/a.png alt="Gate A"><img src=/b.png><img src=/a.png>
<img src=/i.png width=9 height=9></p><video title=Opening src=/o.mp4 poster=/p.jpg></video>
<audio src=/bell.mp3></audio>"""


def test_pictures_and_films_are_listed_once_each(page_part: Callable[..., str]) -> None:
    assert page_part(LISTED, "images") == (
        "1. ![Gate A](https://example.org/a.png)\n"
        "2. ![](https://example.org/b.png)\n"
        "3. [Video: Opening](https://example.org/o.mp4)\n"
        "4. [Audio](https://example.org/bell.mp3)\n"
    )
    assert page_part(LISTED, "images/2") == "2. ![](https://example.org/b.png)\n"


def test_a_picture_or_a_film_is_shown_by_its_address(page_part: Callable[..., str]) -> None:
    assert page_part(LISTED, "images/1", render="image") == "https://example.org/a.png"
    poster = page_part(LISTED, "images/3", render="image")
    assert poster == "https://example.org/p.jpg"


@pytest.mark.parametrize("path", ["images/0", "images/5", "images/x", "images/4"])
def test_a_picture_that_is_not_there_is_out_of_range(
    page_part: Callable[..., str], path: str
) -> None:
    with pytest.raises(OutOfRange):
        page_part(LISTED, path, render="image")


@pytest.mark.parametrize("path", ["images", "links"])
def test_a_page_itself_is_no_picture(page_part: Callable[..., str], path: str) -> None:
    with pytest.raises(BadArgument):
        page_part(LISTED, path, render="image")


@pytest.mark.parametrize(
    ("duration", "written"),
    [("PT3M45S", "3:45"), ("PT90M", "1:30:00"), ("P0DT0H0M7S", "0:07"), ("3:45", ""), ("PT", "")],
)
def test_a_duration_is_written_as_a_clock_shows_it(
    read_page: Read, duration: str, written: str
) -> None:
    film = f'{{"@type": "VideoObject", "name": "Gates", "duration": "{duration}"'
    data = f'<script type="application/ld+json">{film}, "embedUrl": "{EMBEDDED}"}}</script>'
    shown = f"[Video: Gates, {written}]" if written else "[Video: Gates]"
    assert f"{shown}({EMBEDDED})" in read_page(page(f'<iframe src="{EMBEDDED}"></iframe>{data}'))[1]
