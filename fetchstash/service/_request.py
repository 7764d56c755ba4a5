"""What is known of the HTTP request that is being answered, for logs, metrics and the audit log."""

import random
import re
from contextvars import ContextVar
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from fetchstash.service.access import Principal
from fetchstash.text.hygiene import clean_line

_NAME_CHARS = 200
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(slots=True)
class Record:
    """One request. ``rpc_method``, ``tool`` and ``code`` are known once its message was read."""

    id: str
    scope: Scope
    rpc_method: str = ""
    tool: str = ""
    code: str = ""

    @property
    def principal(self) -> Principal | None:
        """Who sends the request, None until a token was verified."""
        return self.scope.get("fetchstash.principal")

    @property
    def names(self) -> dict[str, str]:
        """The fields by which each line of a log names the request."""
        who = self.principal
        if who is None:
            return {"request_id": self.id}
        name = who.name[:_NAME_CHARS]
        if not (name.isascii() and name.isprintable()):  # an identity provider may send any text
            name = clean_line(name)
        return {"request_id": self.id, "tenant": who.tenant, "principal": name}

    @property
    def call(self) -> dict[str, str]:
        """The fields of the message that it brought, without those that are empty."""
        fields = {"rpc_method": self.rpc_method, "tool": self.tool, "code": self.code}
        return {name: value for name, value in fields.items() if value}


_current: ContextVar[Record | None] = ContextVar("_current", default=None)


def current() -> Record | None:
    """Return the request that this task answers, None outside of any."""
    return _current.get()


def begin(scope: Scope) -> Record:
    """Make a request the one that this task, and those that it starts, answer."""
    record = Record(request_id(scope), scope)
    _current.set(record)
    return record


def end() -> None:
    """Answer no request any more."""
    _current.set(None)


def request_id(scope: Scope) -> str:
    """Return the X-Request-Id of a request where it is a plain one, else a new one."""
    sent = Headers(scope=scope).getlist("x-request-id")
    if len(sent) == 1 and _REQUEST_ID.fullmatch(sent[0]):
        return sent[0]
    return f"{random.getrandbits(128):032x}"
