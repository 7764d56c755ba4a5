"""Hostile files, made in code: small ones for the tests, full-sized ones for scripts/ci torture."""

from tests.handlers.hostile.documents import archives, documents, pdfs, pictures
from tests.handlers.hostile.pages import pages
from tests.handlers.hostile.texts import texts

BINARIES = {"pdfs": pdfs, "documents": documents, "archives": archives, "pictures": pictures}
KINDS = ("texts", "pages", *BINARIES)
PAGE_LENGTHS = 10
"""Pages are so much longer than texts."""


def files_of(kind: str, length: int) -> dict[str, tuple[str, bytes]]:
    """Return the files of one kind, by their titles, with their names and bytes."""
    if kind == "texts":
        return texts(length)
    if kind == "pages":
        return {title: ("page.html", page) for title, page in pages(PAGE_LENGTHS * length).items()}
    made = BINARIES[kind]().items()
    return {title: ("a.ipynb" if "IPYNB" in title else "", data) for title, data in made}
