"""A handler for NumPy's .npy files (numpy.lib.format), as a package of its own.

Install it beside fetchstash (``pip install examples/npy_handler``), and arrays that fetchstash only
knew as binary become text: their shape, their type, and their first values. It needs no NumPy. The
entry point in pyproject.toml is all that fetchstash looks for.
"""

import ast
import struct
from pathlib import Path

from fetchstash.handlers import Extracted, ExtractLimits, Format, Hints, Part, Reason
from fetchstash.text.facts import DocumentFacts

FIRST_VALUES = 100
CODES = {
    "f4": "f",
    "f8": "d",
    "i1": "b",
    "i2": "h",
    "i4": "i",
    "i8": "q",
    "u1": "B",
    "u2": "H",
    "u4": "I",
    "u8": "Q",
}


class NpyHandler:
    """Arrays of numbers, as NumPy saves them."""

    name = "npy"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the file says it all
        """Return shape and type as facts, and the first values as text."""
        with source.open("rb") as file:
            magic = file.read(8)
            size = 2 if magic[6] == 1 else 4
            header = file.read(int.from_bytes(file.read(size), "little"))
            described = ast.literal_eval(header.decode("latin-1"))
            order, code = described["descr"][0], described["descr"][1:]
            if code not in CODES:
                raise Reason.NOT_READ.error()
            width = int(code[1:])
            data = file.read(FIRST_VALUES * width)
        values = struct.unpack(
            f"{'>' if order == '>' else '<'}{len(data) // width}{CODES[code]}", data
        )
        shape = " × ".join(map(str, described["shape"]))
        text = f"array of {shape} values of type {code}\n" + "".join(
            f"{value:g}\n" for value in values
        )
        return Extracted(
            [Part(text)],
            DocumentFacts(title=f"array {shape}", structure_info=f"{shape} values of type {code}"),
        )


FORMATS = (
    Format(
        kind="unknown_binary",
        word="NumPy array",
        handler=NpyHandler,
        media_types=("application/x-npy",),
        extensions=("npy",),
        signatures=((0, b"\x93NUMPY"),),
        signed=True,
        priority=1,  # fetchstash knows the signature, and reads nothing of it
    ),
)
