"""Sounds, films and drawings: the line of a fetch says what they are."""

import io
import wave

import pytest

from fetchstash.render import as_shown
from fetchstash.stash import Stash
from tests.loopback import Site

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


def sound(seconds: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8_000)
        file.writeframes(bytes(8_000 * seconds))
    return out.getvalue()


async def test_the_line_of_a_fetch_says_how_long_a_sound_is(stash: Stash, site: Site) -> None:
    artifact = await stash.fetch(site.put("/call.wav", sound(65), "audio/wav"))
    assert artifact.facts.seconds == 65
    assert ", 1:05." in as_shown(artifact).split("\n")[0]


async def test_a_drawing_is_fetched_as_text_and_picture(stash: Stash, site: Site) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>Gate</text></svg>'
    artifact = await stash.fetch(site.put("/gate.svg", svg, "image/svg+xml"))
    assert "<text>Gate</text>" in await artifact.text()
    assert artifact.image is not None
