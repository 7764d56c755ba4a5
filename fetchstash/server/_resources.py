"""Resources, their templates and subscriptions; prompts."""

import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from fetchstash.errors import (
    BadArgument,
    FetchstashError,
    NoText,
    OutOfRange,
    StoreError,
    UnknownRef,
    did_you_mean,
)
from fetchstash.server._lazy import Context
from fetchstash.server._listing import VIEW_URI, view_resource
from fetchstash.store import REF_PREFIX
from fetchstash.text import clip, clip_middle, counted

if TYPE_CHECKING:
    from fetchstash.stash import Stash
    from fetchstash.store import Facts

TEMPLATE = "fetchstash://artifact/{artifact_ref}"
_PREFIX = TEMPLATE.partition("{")[0]
_PAGE = 50
"""Artifacts of one page of the list."""

COMPLETIONS = 100
"""Values of one completion at the most (MCP, completion/complete)."""

_log = logging.getLogger("fetchstash.server")

_TITLE_CHARS, _SOURCE_CHARS = 80, 160
_AGES = ((86_400, "day"), (3_600, "hour"), (60, "minute"))

P = TypeVar("P")
R = TypeVar("R")
Handler = Callable[[Context, P], Awaitable[R]]


def in_one_line(handler: Handler[P, R]) -> Handler[P, R]:
    """Answer the errors of a handler as JSON-RPC has them, in one line."""

    @wraps(handler)
    async def handled(ctx: Context, params: P) -> R:
        try:
            return await handler(ctx, params)
        except FetchstashError as error:
            raise MCPError(_number(error), line_for(ctx, error)) from None

    return handled


def line_for(ctx: Context, error: FetchstashError) -> str:
    """Return an error's line for the client; details that it must not see go to the log."""
    from fetchstash.render import as_tool, error_line  # noqa: PLC0415 - heavy

    if isinstance(error, StoreError):
        _log.warning("%s: %s", ctx.method, error.line(as_tool))
    return error_line(ctx.lifespan_context.host(ctx).shown(error))


def _number(error: FetchstashError) -> int:
    """Return JSON-RPC's code: the parameters are wrong, or the server failed."""
    wrong = (BadArgument, UnknownRef, OutOfRange, NoText)
    return types.INVALID_PARAMS if isinstance(error, wrong) else types.INTERNAL_ERROR


async def list_templates(
    _: Context, __: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    """Return the one template."""
    template = types.ResourceTemplate(
        uri_template=TEMPLATE,
        name="artifact",
        title="What was fetched",
        description="The stored text of an artifact.",
        mime_type="text/plain",
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


@in_one_line
async def list_resources(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    """Return a page of the run's artifacts, newest first."""
    cursor = (params.cursor if params else None) or "0"
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise BadArgument("That is no cursor of this list.", "Ask again without a cursor.")
    stash = await ctx.lifespan_context.get(ctx)
    page = await stash.list(limit=_PAGE, offset=int(cursor))
    now = datetime.now(UTC)
    following = int(cursor) + len(page.facts)
    return types.ListResourcesResult(
        resources=[_resource(facts, now) for facts in page.facts],
        next_cursor=str(following) if page.facts and following < page.total else None,
    )


def _resource(facts: "Facts", now: datetime) -> types.Resource:
    from fetchstash.render import size  # noqa: PLC0415 - heavy

    created, has_text = facts.created_at or now, facts.extracted_chars is not None
    source = clip_middle(facts.source_url or facts.name, _SOURCE_CHARS)
    parts = [source, facts.word, size(facts.size_bytes), f"fetched {age(created, now)}"]
    return types.Resource(
        uri=_PREFIX + facts.artifact_ref,
        name=facts.artifact_ref,
        title=clip(facts.title or facts.name or source, _TITLE_CHARS),
        description=", ".join(filter(None, parts)),
        mime_type="text/plain" if has_text else facts.media_type,
        size=facts.text_bytes if has_text else facts.size_bytes,
        annotations=types.Annotations(last_modified=created.isoformat(timespec="seconds")),
    )


def age(then: datetime, now: datetime) -> str:
    """Return how long ago something was, in its largest unit."""
    seconds = max(int((now - then).total_seconds()), 0)
    for length, unit in _AGES:
        if count := seconds // length:
            return f"{counted(count, unit)} ago"
    return "just now"


async def read_resource(
    ctx: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    """Return the text of an artifact, of an image its picture. Errors carry the URI as data."""
    uri = str(params.uri)
    if uri == VIEW_URI:
        return types.ReadResourceResult(contents=[view_resource()])
    try:
        if not uri.startswith(_PREFIX + REF_PREFIX):
            raise BadArgument(f"There is no resource {clip(uri, 120)!r}.", f"Use {TEMPLATE}.")
        stash = await ctx.lifespan_context.get(ctx)
        contents = await _contents(ctx, stash, uri)
    except FetchstashError as error:
        data = {"uri": uri, "code": error.code}
        raise MCPError(_number(error), line_for(ctx, error), data) from None
    return types.ReadResourceResult(contents=[contents])


async def _contents(
    ctx: Context, stash: "Stash", uri: str
) -> types.TextResourceContents | types.BlobResourceContents:
    from fetchstash.render import view_of  # noqa: PLC0415 - heavy

    ref = uri.removeprefix(_PREFIX)
    facts = (await stash.get(ref)).facts
    if facts.extracted_chars is None and facts.width is not None and facts.pages is None:
        picture = await stash.picture(ref)
        blob = b64encode(picture.data).decode("ascii")
        return types.BlobResourceContents(uri=uri, mime_type=picture.media_type, blob=blob)
    host = ctx.lifespan_context.host(ctx)
    ceiling = host.limits.max_chars_ceiling
    part = await stash.read(ref, max_chars=ceiling)
    text = view_of(host, part, ceiling).text
    return types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)


@in_one_line
async def complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Return references with this prefix, then those whose title or URL contains the words."""
    stash = await ctx.lifespan_context.get(ctx)
    listing = await stash.list(limit=10 * COMPLETIONS)
    values = matching(list(listing), params.argument.value)
    completion = types.Completion(
        values=values[:COMPLETIONS], total=len(values), has_more=len(values) > COMPLETIONS
    )
    return types.CompleteResult(completion=completion)


def matching(artifacts: "Sequence[Facts]", typed: str) -> list[str]:
    """Return the references that ``typed`` may mean: by their beginning, then by title or URL."""
    words = typed.casefold().split()
    begun = [facts for facts in artifacts if facts.artifact_ref.startswith(typed)]
    about = [
        facts
        for facts in artifacts
        if words and facts not in begun and all(word in _words(facts) for word in words)
    ]
    return [facts.artifact_ref for facts in (*begun, *about)]


def _words(facts: "Facts") -> str:
    return f"{facts.title} {facts.source_url} {facts.final_url} {facts.name}".casefold()


class Announcer:
    """Notifies clients that the list of artifacts changed, by the protocol of their era."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._known: set[str] = set()
        self.listen = ListenHandler(self._bus)

    async def fetched(self, ctx: Context, facts: Sequence[Any]) -> None:
        """Announce artifacts that this process has not seen yet."""
        refs = {str(item["artifact_ref"]) for item in facts} - self._known
        if not refs:
            return
        self._known |= refs
        if ctx.session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await ctx.session.send_resource_list_changed()
        await self._bus.publish(ResourcesListChanged())


_MAX_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt: ``text`` has placeholders in braces, ``arguments`` describes each.

    The first ``required`` of them are needed.
    """

    title: str
    description: str
    text: str
    arguments: Mapping[str, str]
    required: int = 1


_DOCUMENT = "URL, or artifact_ref of what was fetched (completed by title)"
_PROMPTS = {
    "read_document": _Prompt(
        "Read a document",
        "Read a page or document, however long, and answer a question about it.",
        "{document}Read it without filling the context: look at the outline (artifact_info) and "
        "the preview, find the places with artifact_grep or artifact_search, and read those with "
        "artifact_slice. {question} Say which pages or lines each statement comes from.",
        {"document": _DOCUMENT, "question": "What you want to know; empty: a summary"},
    ),
    "compare_pages": _Prompt(
        "Compare pages",
        "Compare two pages or documents.",
        "{first}{second}Compare the two{aspect}. Begin with what differs, then say what they "
        "share, and quote the lines that show it with their line numbers.",
        {"first": _DOCUMENT, "second": _DOCUMENT, "aspect": "What to compare them by"},
        required=2,
    ),
    "find_in_fetched": _Prompt(
        "Find in what was fetched",
        "Find something in everything that was fetched in this project.",
        "Find in what was fetched already: {words}. Use artifact_search, then artifact_grep for "
        "the exact words; artifact_info lists what there is. Fetch nothing new. Say where each "
        "passage stands: its source and lines.",
        {"words": "What to look for"},
    ),
}


async def list_prompts(
    _: Context, __: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    """Return the prompts."""
    return types.ListPromptsResult(prompts=[_listed(name, p) for name, p in _PROMPTS.items()])


def _listed(name: str, prompt: _Prompt) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=argument, description=meaning, required=place < prompt.required)
        for place, (argument, meaning) in enumerate(prompt.arguments.items())
    ]
    return types.Prompt(
        name=name, title=prompt.title, description=prompt.description, arguments=arguments
    )


@in_one_line
async def get_prompt(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """Return a prompt with its arguments filled in."""
    prompt = _PROMPTS.get(params.name)
    if prompt is None:
        advice = did_you_mean(params.name, _PROMPTS) or f"There are {', '.join(_PROMPTS)}."
        raise BadArgument(f"There is no prompt {clip(params.name, 60)!r}.", advice)
    values = {name: value.strip() for name, value in (params.arguments or {}).items()}
    for name in values:
        if name not in prompt.arguments:
            what = f"{params.name} has no argument {clip(name, 60)!r}."
            raise BadArgument(what, f"It has {', '.join(prompt.arguments)}.")
    for name in list(prompt.arguments)[: prompt.required]:
        if not values.get(name):
            raise BadArgument(f"{params.name} needs {name}.", f"Give {name}.")
    filled = {name: _filled(name, values.get(name, "")) for name in prompt.arguments}
    content = types.TextContent(type="text", text=prompt.text.format_map(filled))
    message = types.PromptMessage(role="user", content=content)
    return types.GetPromptResult(description=prompt.description, messages=[message])


def _filled(name: str, value: str) -> str:
    """Return the text that replaces an argument's placeholder."""
    value = clip(value, _MAX_CHARS)
    if name in ("document", "first", "second"):
        if value.startswith(REF_PREFIX):
            return f"The document is the artifact {value}. "
        return f"Fetch {value} with fetch_content. "
    if name == "question":
        return f'Then answer "{value}".' if value else "Then sum it up."
    if name == "aspect":
        return f" by {value}" if value else ""
    return value
