"""Frames: what a worker may send without holding the server's loop."""

import json

import pytest

from fetchstash.handlers._worker._frames import MAX_STRUCTURE, ProtocolError, decode, encode

LONG = 'a "text" with , [ { : and \\\\ in it, 12 é\n' * 100_000


def test_a_frame_with_a_long_string_is_read() -> None:
    frame = {"found": {"text": LONG, "total": 1}}
    assert decode(encode(frame)[4:]) == frame


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a":[' + b"0," * MAX_STRUCTURE + b"0]}", id="a long list"),
        pytest.param(
            json.dumps(dict.fromkeys(map(str, range(99_999)), 0)).encode(), id="many keys"
        ),
        pytest.param(b'{"a":' + b"9" * 10**6 + b"}", id="a long number"),
        pytest.param(b'{"a":' + b"[" * 10**6, id="an open list"),
        pytest.param(b'{"' + b"a" * 10**6, id="an open string"),
        pytest.param(b'{"a\\' + b"\\" * 10**6, id="open escapes"),
    ],
)
def test_a_frame_of_many_small_values_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(body)
