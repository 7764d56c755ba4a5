"""The raw address of a file that GitHub, GitLab or Gitea shows as a page. Pure functions."""

import re
from urllib.parse import urlsplit

# A page of a file in a repository; its raw address differs in one word, and on GitHub in the host.
_GITHUB = re.compile(r"/([\w.-]+)/([\w.-]+)/blob/(.+)")
_GITLAB = re.compile(r"(/.+)/-/blob/(.+)")
_GITEA = re.compile(r"(/[\w.-]+/[\w.-]+)/src/((?:branch|tag|commit)/.+/.+)")


def raw_address(url: str) -> str:
    """Return where the bytes of a file are that a page shows, "" for any other address.

    Addresses with a query are left alone: what it asks for is of the page.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or parts.query or "@" in parts.netloc:
        return ""
    origin = f"{parts.scheme}://{parts.netloc}"
    if parts.netloc in {"github.com", "www.github.com"}:
        if match := _GITHUB.fullmatch(parts.path):
            return f"https://raw.githubusercontent.com/{'/'.join(match.groups())}"
    elif match := _GITLAB.fullmatch(parts.path):
        return f"{origin}{match[1]}/-/raw/{match[2]}"
    elif match := _GITEA.fullmatch(parts.path):
        return f"{origin}{match[1]}/raw/{match[2]}"
    return ""
