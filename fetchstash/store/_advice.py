"""Next steps that recur in the errors of this room."""

from fetchstash.errors import Call

REPAIR = Call("repair")
OTHER_FOLDER = Call("setting", {"name": "store.folder", "value": "FOLDER"})


def larger_than_the_store(size: int) -> tuple[str, str, Call]:
    """Return what to say of a document that is larger than all that may be kept."""
    raised = Call("setting", {"name": "store.max_total_bytes", "value": size})
    return "The document is larger than all that the store may keep.", "{}.", raised
