"""The states of many conversations behind one Recovery, each found by how it begins."""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from fetchstash.client._formats import Message, as_json
from fetchstash.client._policy import State, content_hash
from fetchstash.client._shapes import an_object

MAX_CONVERSATIONS = 256
"""How many states are kept, the most recently used. A lost one costs a cold prompt cache."""


class Conversations:
    """Finds the state of a conversation by its messages up to the first that a user wrote.

    Conversations that begin alike share a state. That is safe: a stub is known by the id of its
    call and the hash of its content, so a state never puts one where its content does not stand.
    """

    def __init__(self) -> None:
        self._states: OrderedDict[str, State] = OrderedDict()
        self._lock = Lock()

    def state(self, messages: Sequence[Message]) -> State:
        """Return the state of these messages' conversation, a new one for a new conversation."""
        key = _head_hash(messages)
        with self._lock:
            state = self._states.setdefault(key, State())
            self._states.move_to_end(key)
            while len(self._states) > MAX_CONVERSATIONS:
                self._states.popitem(last=False)
        return state


def _head_hash(messages: Sequence[Message]) -> str:
    head: list[Message] = []
    for message in messages:
        head.append(message)
        if an_object(message).get("role") == "user":
            break
    return content_hash(as_json(head))
