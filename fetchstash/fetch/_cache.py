"""What a stored answer is still worth: pure functions (RFC 9111, RFC 9110 section 13)."""

from fetchstash.fetch._contract import Cached


def conditions(cached: Cached | None) -> dict[str, str]:
    """Return the request headers that ask whether ``cached`` is still what the server has (RFC 9110, section 13.1)."""
    if cached is None:
        return {}
    fields = {"If-None-Match": cached.etag, "If-Modified-Since": cached.last_modified}
    return {name: value for name, value in fields.items() if value and value.isascii() and value.isprintable()}
