"""Prompts: what people ask for often, as hosts offer it (slash commands)."""

from collections.abc import Mapping
from dataclasses import dataclass

import mcp_types as types

from fetchstash.errors import BadArgument, did_you_mean
from fetchstash.server._lazy import Context
from fetchstash.server._resources import in_one_line
from fetchstash.store import REF_PREFIX
from fetchstash.text import clip

_MAX_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt. ``text`` has its arguments in braces; ``arguments`` says what each is.

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
    """Return what an argument becomes in the text."""
    value = clip(value, _MAX_CHARS)
    if name in ("document", "first", "second"):
        if value.startswith(REF_PREFIX):
            return f"The document is the artifact {value}. "
        return f"Fetch {value} with fetch_content. "
    if name == "question":
        return f"Then answer: {value}" if value else "Then sum it up."
    if name == "aspect":
        return f" by {value}" if value else ""
    return value
