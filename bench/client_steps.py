"""Run an agent of 300 steps and 24 MB through real SDKs, against a provider on loopback.

    python -P bench/client_steps.py [--loop NAME …] [--steps 300] [--kilobytes 80]

Each step brings a result of a tool of 80 KB; the provider refuses requests of more than 128,000
tokens of four characters, and the client is not told of that window. "identical" counts requests
that were sent before, byte for byte. "tokens" are millions of the provider's, sent in all. CPU is
that of the thread in which the SDK runs: "step" its mean in milliseconds, "per MB" by how much a
step grows with a megabyte of history (the last tenth of the steps beside the first). Each SDK runs
in its environment of requirements/tools.
"""

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench._run import load
from scripts.drive.programs import options
from scripts.drive.tools import ROOT, python_tool

LIMIT = 128_000
ENVIRONMENTS = {
    "openai chat": ("openai", "openai"),
    "openai responses": ("openai", "openai"),
    "anthropic": ("adapters", "anthropic"),
    "litellm": ("adapters", "litellm"),
    "langchain": ("langchain", "langchain"),
}
"""The environment of each loop, and the SDK that is tested in it."""
FIGURES = "requests refused identical tokens step per_mb"


def page(number: int, chars: int) -> str:
    """Return a result unlike all others."""
    line = " ".join(f"page{number} item{item}" for item in range(12)) + ".\n"
    return (line * (chars // len(line) + 1))[:chars]


Ask = Callable[[list[Any]], Any]


def chat_turn(number: int, text: str) -> list[Any]:
    """Return a call and its result in Chat Completions."""
    function = {"name": "fetch", "arguments": json.dumps({"page": number})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": text},
    ]


def responses_turn(number: int, text: str) -> list[Any]:
    """Return a call and its result in OpenAI's Responses."""
    call = {"type": "function_call", "call_id": f"call_{number}", "name": "fetch"}
    return [
        call | {"arguments": json.dumps({"page": number})},
        {"type": "function_call_output", "call_id": f"call_{number}", "output": text},
    ]


def anthropic_turn(number: int, text: str) -> list[Any]:
    """Return a call and its result in Anthropic's Messages."""
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": "fetch", "input": {"page": number}}
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": text}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def asker(name: str, url: str) -> tuple[Ask, Callable[[int, str], list[Any]]]:
    """Return what sends messages by the SDK of a loop, and what makes a turn for it."""
    from fetchstash.client import Recovery  # noqa: PLC0415 - in the environment of the SDK alone
    from tests.client import sdks  # noqa: PLC0415 - as above

    recovery = Recovery()
    if name == "openai chat":
        chat = sdks.openai(url, recovery).chat.completions
        return lambda messages: chat.create(model="m", messages=messages), chat_turn
    if name == "openai responses":
        responses = sdks.openai(url, recovery).responses
        return lambda items: responses.create(model="m", input=items), responses_turn
    if name == "anthropic":
        made = sdks.anthropic(url, recovery).messages
        return lambda m: made.create(model="m", max_tokens=9, messages=m), anthropic_turn
    if name == "litellm":
        complete = sdks.adapter("litellm").completion(recovery)
        base = {"model": "openai/m", "api_base": f"{url}/v1", "api_key": "k", "max_retries": 0}
        return lambda messages: complete(messages=messages, **base), chat_turn
    agent = sdks.langchain_agent(url, recovery)
    convert = sdks.module("langchain_core.messages").convert_to_messages
    ask: Ask = lambda messages: agent.invoke({"messages": messages})  # noqa: E731 - as the others
    return ask, lambda number, text: convert(chat_turn(number, text))


def run(name: str, steps: int, chars: int) -> list[str]:
    """Run a loop, and return its figures."""
    from tests.client.loopback import Loopback, tokens  # noqa: PLC0415 - as in asker

    times = list[float]()
    with Loopback("good", limit=LIMIT) as provider:
        ask, turn = asker(name, provider.url)
        messages: list[Any] = [{"role": "user", "content": "Sum up all pages."}]
        for number in range(steps):
            messages += turn(number, page(number, chars))
            begun = time.thread_time()
            ask(messages)
            times.append(time.thread_time() - begun)
    sent = [json.dumps(body) for body in provider.bodies]
    tenth = max(steps // 10, 1)
    # The first steps load modules and the vocabulary.
    first, last = times[tenth : 2 * tenth], times[-tenth:]
    grown = (steps - 1.5 * tenth - tenth / 2) * chars / 1e6
    growth = (statistics.median(last) - statistics.median(first)) * 1_000 / grown
    return [
        str(len(sent)),
        str(provider.refused),
        str(len(sent) - len(set(sent))),
        f"{sum(map(tokens, provider.bodies)) / 1e6:.1f}",
        f"{statistics.mean(times[tenth:]) * 1_000:.1f}",
        f"{growth:.2f}",
    ]


def in_environment(name: str, arguments: Sequence[str]) -> str | None:
    """Run one loop in its environment and return its line, None where that cannot be had."""
    tool, sdk = ENVIRONMENTS[name]
    programs = python_tool(tool)
    if programs is None:
        return None
    about = {"ADAPTERS_UNDER_TEST": sdk, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment = {**os.environ, **about, "PYTHONPATH": str(ROOT)}
    command = [str(programs / "python"), "-P", __file__, "--here", name, *arguments]
    said = subprocess.check_output(command, cwd=ROOT, env=environment, text=True)
    return str(said.splitlines()[-1])


def main() -> None:
    """Print a line for each loop."""
    taken = options(__doc__, loop="", here="", steps=300, kilobytes=80)
    if taken.here:
        print(*run(taken.here, taken.steps, taken.kilobytes * 1_000))
        return
    print(load())
    print(f"{'':<20}", *(f"{figure:>10}" for figure in FIGURES.split()))
    arguments = ["--steps", str(taken.steps), "--kilobytes", str(taken.kilobytes)]
    for name in [taken.loop] if taken.loop else ENVIRONMENTS:
        line = in_environment(name, arguments)
        if line is not None:
            print(f"{name:<20}", *(f"{figure:>10}" for figure in line.split()), flush=True)


if __name__ == "__main__":
    main()
