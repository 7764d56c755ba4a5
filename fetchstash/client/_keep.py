"""Keeping what leaves the context: an offload that fails is reported, and ends no recovery."""

import logging
from dataclasses import dataclass

from fetchstash.client._events import OnEvent, emit
from fetchstash.client._policy import Offload

_log = logging.getLogger("fetchstash.client")


@dataclass(frozen=True, slots=True)
class Kept:
    """The place of a kept content: ``ref`` is "" if it is not, ``lost`` if keeping it failed."""

    ref: str = ""
    lost: bool = False

    @property
    def clause(self) -> str:
        """The words that say so after a description of the content; "" without an offload."""
        if self.lost:
            return ", gone from the context and not kept"
        return f", kept as {self.ref}" if self.ref else ""


def keep(offload: Offload | None, text: str, name: str) -> Kept:
    """Keep a content and return where.

    Never raises: what cannot be kept has to leave the context all the same.
    """
    if offload is None:
        return Kept()
    try:
        return Kept(offload.keep(text, name))
    except Exception as error:  # noqa: BLE001 - whatever a store raises, the model still has to be asked
        _log.warning("A content that leaves the context could not be kept: %s", error)
        return Kept(lost=True)


class ObservedOffload:
    """An offload whose failures ``on_event`` is told of."""

    def __init__(self, offload: Offload, on_event: OnEvent | None) -> None:
        self._offload = offload
        self._on_event = on_event

    def keep(self, text: str, name: str) -> str:
        """Keep ``text`` and return its reference. Raises what the offload raises."""
        try:
            return self._offload.keep(text, name)
        except Exception as error:
            attributes = {"error": type(error).__name__, "chars": len(text)}
            emit(self._on_event, "offload.failed", attributes)
            raise
