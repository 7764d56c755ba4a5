"""The last stage: the oldest messages become one, which says what they were about."""

from collections import Counter
from collections.abc import Sequence

from fetchstash.client._formats import Message, Part, as_json, plain
from fetchstash.client._keep import keep
from fetchstash.client._policy import Merge, Offload, content_hash
from fetchstash.client._stubs import first_sentence

QUOTED = 6
"""How many of the user's latest sentences a merged text quotes, and how many tools it names."""


def message_hash(message: Message) -> str:
    """Return what stands for a whole message."""
    return content_hash(as_json(message))


def merge_of(
    messages: Sequence[Message], all_parts: Sequence[Part], offload: Offload | None
) -> Merge:
    """Return the merge of ``messages``, whose parts are ``all_parts``."""
    # Plain text, because the escapes of JSON would hide words from a grep.
    whole = "\n\n".join(
        f"[{part.role} {part.kind} {part.name}]\n{plain(part.value)}" for part in all_parts
    )
    kept = keep(offload, whole, "earlier messages")
    return Merge(
        tuple(message_hash(message) for message in messages),
        merged_text(len(messages), all_parts, kept.clause),
    )


def merged_text(count: int, all_parts: Sequence[Part], kept: str = "") -> str:
    """Return what stands for ``count`` messages; ``kept`` says where they are kept."""
    quotable = [part for part in all_parts if not part.background]
    tools = Counter(part.name or "a tool" for part in quotable if part.kind == "call")
    sentences = [
        first_sentence(part.text)
        for part in quotable
        if part.kind == "text" and part.role == "user"
    ]
    lines = [f"(Earlier part of this conversation: {count} messages{kept}."]
    if tools:
        lines.append(
            "Tools were called: "
            + ", ".join(f"{name} {times}x" for name, times in tools.most_common(QUOTED))
            + "."
        )
    quoted = [sentence for sentence in sentences if sentence][-QUOTED:]
    if quoted:
        lines.append("The user said, among other things:\n- " + "\n- ".join(quoted))
    return "\n".join(lines) + ")"


def find_run(hashes: Sequence[str], run: Sequence[str]) -> int | None:
    """Return where ``run`` first stands in ``hashes``; None if it does not."""
    for at in range(len(hashes) - len(run) + 1):
        if hashes[at] == run[0] and tuple(hashes[at : at + len(run)]) == tuple(run):
            return at
    return None
