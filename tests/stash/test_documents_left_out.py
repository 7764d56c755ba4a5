"""What the text of a document leaves out is counted by grep, and read by its path."""

import io
import zipfile

import pytest

from fetchstash.render import as_shown
from fetchstash.stash import Stash
from tests.loopback import Site

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"


def presentation() -> bytes:
    """Return one slide with a text and a footer."""
    shape = (
        "<p:sp><p:nvPr>{}</p:nvPr><p:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:txBody></p:sp>"
    )
    shapes = shape.format("", "The gates are open.") + shape.format('<p:ph type="ftr"/>', "Secret")
    listed = '<p:sldIdLst><p:sldId r:id="r1"/></p:sldIdLst>'
    target = '<Relationship Id="r1" Type="x/slide" Target="slides/slide1.xml"/>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as container:
        for name, content in {
            "[Content_Types].xml": "<Types/>",
            "ppt/presentation.xml": f'<p:show xmlns:p="p" xmlns:r="r">{listed}</p:show>',
            "ppt/_rels/presentation.xml.rels": f"<Relationships>{target}</Relationships>",
            "ppt/slides/slide1.xml": f'<p:sld xmlns:p="p" xmlns:a="a">{shapes}</p:sld>',
        }.items():
            container.writestr(name, content)
    return out.getvalue()


async def test_grep_names_the_matches_in_the_footers_of_slides(stash: Stash, site: Site) -> None:
    artifact = await stash.fetch(site.put("/talk.pptx", presentation(), PPTX))
    matches = await artifact.grep("secret", ignore_case=True)
    assert (matches.total, matches.artifacts[0].left_out) == (0, 1)
    assert 'path="left_out"' in as_shown(matches)
    assert (await artifact.slice(path="left_out")).text == "## footers\n\nSecret\n"
