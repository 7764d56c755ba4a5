"""The openai SDK: a client whose Chat Completions and Responses recover from an overflow.

    client = recovering(OpenAI(), Recovery())
    client.chat.completions.create(model=…, messages=[…])

Every request of the SDK goes through the client's ``post``, with a body that is plain data by then:
``create``, ``parse`` and ``stream`` alike. A copy of the client has its ``post`` replaced. Its
``create`` and ``parse`` hide the messages from the SDK's transform, which walks each through all
types of messages (7 ms for a megabyte) and leaves plain data as they are.
"""

from collections.abc import Mapping
from functools import wraps
from typing import Any, TypeVar, Unpack

from fetchstash.client._recovery import Recovery
from fetchstash.client._streams import an_object
from fetchstash.client.adapters import (
    CHAT,
    Needs,
    Options,
    Shape,
    account_of,
    as_data,
    configured,
)
from fetchstash.errors import type_checked

with Needs("openai", "openai", "2.54"):
    from openai import AsyncOpenAI, OpenAI

Client = TypeVar("Client", OpenAI, AsyncOpenAI)

SHAPES = {
    "/chat/completions": CHAT,
    "/responses": Shape(
        "input",
        "openai_responses",
        ("max_output_tokens",),
        ("instructions", "tools", "text", "prompt"),
        ("previous_response_id", "conversation"),
    ),
}
"""The requests that recover, by path."""

_HELPER = "X-Stainless-Helper-Method"


@type_checked
def recovering(
    client: Client, recovery: Recovery | None = None, **options: Unpack[Options]
) -> Client:
    """Return a copy of ``client`` that recovers; it shares the connections.

    Clients made by ``with_options`` and ``copy`` recover, too. Raises what the SDK raises.
    """
    return _recovering(client, configured(recovery, options))


def _recovering(client: Client, recovery: Recovery) -> Client:
    made = client.copy()
    post = _post(made, recovery)

    def copy(**changes: Any) -> Any:
        return _recovering(type(made).copy(made, **changes), recovery)

    # Resources take the client's ``post`` when they are made, which is when they are first used.
    for name, method in {"post": post, "copy": copy, "with_options": copy}.items():
        setattr(made, name, method)
    _mark_streams(made.responses)
    for resource, name in ((made.chat.completions, "messages"), (made.responses, "input")):
        for method in ("create", "parse"):
            setattr(resource, method, _hiding(getattr(resource, method), name))
    return made


class _Hidden:
    """Messages as plain data, in an object that the SDK's transform passes on as it is."""

    def __init__(self, messages: list[Any]) -> None:
        self.messages = messages


def _hiding(create: Any, name: str) -> Any:
    """Return a resource's method that hides the argument ``name`` until the client's ``post``."""

    @wraps(create)
    def hiding(*args: Any, **kwargs: Any) -> Any:
        messages = as_data(kwargs.get(name))
        return create(*args, **kwargs if messages is None else kwargs | {name: _Hidden(messages)})

    return hiding


def _shown(body: Any) -> tuple[Any, list[Any] | None]:
    """Return a body with its messages in sight, and the messages if they were hidden."""
    for name, value in an_object(body).items():
        if isinstance(value, _Hidden):
            return {**body, name: value.messages}, value.messages
    return body, None


def _mark_streams(responses: Any) -> None:
    """Let ``responses.stream`` send a header, as ``chat.completions.stream`` does."""
    stream = responses.stream

    def marked(*args: Any, extra_headers: Mapping[str, str] | None = None, **kwargs: Any) -> Any:
        headers = {_HELPER: "responses.stream", **(extra_headers or {})}
        return stream(*args, extra_headers=headers, **kwargs)

    responses.stream = marked


def _post(client: Any, recovery: Recovery) -> Any:
    """Return a ``post`` that recovers: what it returns is awaited where the client's is."""
    post = client.post
    asynchronous = isinstance(client, AsyncOpenAI)
    call: Any = recovery.acall if asynchronous else recovery.call
    stream: Any = recovery.aopen if asynchronous else recovery.open

    def recovering_post(path: str, **kwargs: Any) -> Any:
        kwargs["body"], plain = _shown(kwargs.get("body"))
        plan = _plan(path, kwargs, plain)
        if plan is None:
            return post(path, **kwargs)
        shape, messages, held = plan
        body = kwargs["body"]
        send = shape.sending(lambda changed: post(path, **kwargs | {"body": changed}), body)
        account = _account(client, kwargs)
        request = shape.request(body, messages, str(client.base_url), account=account)
        if kwargs.get("stream") and held is not None:
            return stream(send, request, held=held)
        return call(send, request)

    return recovering_post


def _account(client: Any, kwargs: dict[str, Any]) -> str:
    """Return the hash of the account that pays; a key of the call's own comes first."""
    headers = an_object(an_object(kwargs.get("options")).get("headers"))
    named = {str(name).lower(): value for name, value in headers.items()}
    own = named.get("authorization") or named.get("api-key")
    renewed = getattr(client, "_api_key_provider", None)  # Azure's tokens, and keys by a function
    return account_of(own or renewed or client.api_key, client.organization, client.project)


def _plan(
    path: str, kwargs: dict[str, Any], plain: list[Any] | None
) -> tuple[Shape, list[Any], bool | None] | None:
    """Return the shape of a request, its messages, and whether its stream is held.

    ``plain`` are the messages if they are plain data already. None where it does not recover. The
    SDK's own readers of streams cannot begin again, so that theirs are held; a raw response is no
    stream yet (None).
    """
    shape, body = SHAPES.get(path), an_object(kwargs.get("body"))
    messages = (plain or as_data(body.get(shape.messages))) if shape else None
    if shape is None or messages is None:
        return None
    headers = an_object(an_object(kwargs.get("options")).get("headers"))
    names = {str(name).lower() for name in headers}
    if "x-stainless-raw-response" in names:
        return shape, messages, None
    return shape, messages, _HELPER.lower() in names
