"""Serve a library that turns bytes into text as a tool ``extract``: extract.py LIBRARY.

Runs in the library's own environment, with nothing but the standard library and that library.
"""

import sys
import urllib.request
from io import BytesIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from planted import serve


def extract(url: str) -> str:
    """Return the text of a page, fetched by the plainest means."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        body, media_type = answer.read(), answer.headers.get("Content-Type", "")
    charset = answer.headers.get_content_charset() or "utf-8"
    match sys.argv[1]:
        case "trafilatura":
            import trafilatura  # noqa: PLC0415 - one of the three is here

            return trafilatura.extract(body, output_format="markdown", include_links=True) or ""
        case "markitdown":
            from markitdown import MarkItDown, StreamInfo  # noqa: PLC0415

            about = StreamInfo(mimetype=media_type.partition(";")[0] or None, url=url)
            return MarkItDown().convert_stream(BytesIO(body), stream_info=about).markdown
        case _:
            import html2text  # noqa: PLC0415

            return html2text.html2text(body.decode(charset, "replace"))


if __name__ == "__main__":
    serve("extract", extract)
