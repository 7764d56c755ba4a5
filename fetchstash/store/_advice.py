"""Next steps that recur in the errors of this room."""

from fetchstash.errors import Call, NoText, UnknownRef
from fetchstash.text import clip

REPAIR = Call("repair")
MAX_SHOWN_URL = 200
OTHER_FOLDER = Call("setting", {"name": "store.folder", "value": "FOLDER"})


def larger_than_the_store(size: int) -> tuple[str, str, Call]:
    """Return what to say of a document that is larger than all that may be kept."""
    raised = Call("setting", {"name": "store.max_total_bytes", "value": size})
    return "The document is larger than all that the store may keep.", "{}.", raised


def not_stored(url: str) -> UnknownRef:
    """Return the error for a URL that nothing was fetched from, with the call that fetches it."""
    if not url.startswith(("http://", "https://")):
        what = f"{clip(url, 60)!r} is neither a reference nor a URL."
        return UnknownRef(what, "{} lists what is stored.", Call("list"))
    is_short = len(url) <= MAX_SHOWN_URL
    call = Call("fetch", {"url": url}) if is_short else Call("list")
    next_step = "Fetch it first: {}." if is_short else "Give a reference; {} lists them."
    return UnknownRef("Nothing is stored under this URL.", next_step, call)


def no_text(ref: str) -> NoText:
    """Return the error for an artifact that is bytes alone, with the call that shows its facts."""
    what = f"The artifact {ref} has no text."
    return NoText(what, "Read its facts with {}.", Call("info", {"ref": ref}))
