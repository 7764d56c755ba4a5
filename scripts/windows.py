"""Make the table of context windows from LiteLLM's list of models, or compare the two.

    python scripts/windows.py [LIST.json] [--write]

LIST.json is model_prices_and_context_window_backup.json of an installed litellm (scripts/adapters
installs one, and this finds it). Prints when the table was read and where it differs, and exits
with 1 if it does; --write puts the table of this list into fetchstash/client/_windows.py.
"""

import argparse
import datetime as dt
import json
import re
import sys
from collections import Counter, defaultdict
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fetchstash.client import _windows

MODULE = Path(__file__).parents[1] / "fetchstash" / "client" / "_windows.py"
PROVIDERS = frozenset(
    {"anthropic", "openai", "gemini", "mistral", "deepseek", "xai", "cohere_chat", "moonshot"}
    | {"zai", "minimax", "dashscope"}
)
"""Those who serve their own models: what others serve may have a smaller window than the model."""

OPEN_WEIGHTS = {
    "deepseek-r1": 131_072, "deepseek-v3": 128_000, "gemma-3": 128_000, "gpt-oss": 128_000,
    "llama-3": 8_192, "llama-3.1": 128_000, "llama-3.2": 128_000, "llama-3.3": 128_000,
    "llama-4": 131_072, "qwen3": 131_072, "qwen3-14b": 40_960,
}  # fmt: skip
"""Served by everybody; of the windows that most of their entries have, the smaller one."""

DEFAULTS = {
    "claude": 200_000, "claude-opus-4": 200_000, "claude-sonnet-4": 200_000, "gemini": 1_048_576,
    "gpt-4": 8_192, "gpt-5": 272_000,
}  # fmt: skip
"""What a name of a family that is not in the list counts as."""


def listed(models: dict[str, Any]) -> dict[str, int]:
    """Return the windows of providers' own models, by name; the smaller one of two."""
    windows: dict[str, int] = {}
    for name, facts in models.items():
        window = facts.get("max_input_tokens")
        own = facts.get("litellm_provider") in PROVIDERS and facts.get("mode") in {
            "chat",
            "responses",
        }
        if own and isinstance(window, int) and not name.startswith("ft:"):
            plain = _windows.plain_name(name)
            windows[plain] = min(window, windows.get(plain, window))
    return windows


def compressed(windows: dict[str, int]) -> dict[str, int]:
    """Return the shortest beginnings of names that give every name its window."""
    by_prefix: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for name, window in windows.items():
        ends = [*(match.start() for match in re.finditer(r"[^a-z0-9]", name)), len(name)]
        for end in ends:
            by_prefix[name[:end]][window] += 1
    table = DEFAULTS | OPEN_WEIGHTS
    for prefix in sorted(by_prefix, key=len):
        ((window, times), *others) = by_prefix[prefix].most_common()
        # Where as many say one thing as another, the smaller window is the safe one.
        window = min([window, *(other for other, count in others if count == times)])
        if prefix in DEFAULTS | OPEN_WEIGHTS or not re.search(r"\d", prefix):
            continue
        if _lookup(table, prefix) != window:
            table[prefix] = window
    for name, window in windows.items():
        if _lookup(table, name) != window:
            table[name] = window
    return dict(sorted(table.items()))


def _lookup(table: dict[str, int], name: str) -> int | None:
    fitting = [p for p in table if name.startswith(p) and not name[len(p) :][:1].isalnum()]
    return table[max(fitting, key=len)] if fitting else None


def main() -> int:
    """Write the table, or compare it; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("list", nargs="?", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    found = find_spec("litellm")
    path = arguments.list
    if path is None and found and found.origin:
        path = Path(found.origin).with_name("model_prices_and_context_window_backup.json")
    if path is None:
        print("No litellm is installed here: give its list of models.", file=sys.stderr)
        return 2
    windows = listed(json.loads(path.read_text(encoding="utf-8")))
    if arguments.write:
        try:
            release = version("litellm")
        except PackageNotFoundError:
            release = "of " + path.parent.name
        write(compressed(windows), f"LiteLLM {release}, {path.name}, max_input_tokens")
        return 0
    print(f"The table was read on {_windows.READ_ON} from {_windows.SOURCE}.")
    differing = {
        name: (_windows.known_window(name), window)
        for name, window in sorted(windows.items())
        if _windows.known_window(name) != window
    }
    for name, (ours, theirs) in differing.items():
        print(f"{name}: {ours} in the table, {theirs} in the list")
    print(f"{len(windows)} models, {len(differing)} differ.")
    return 1 if differing else 0


def write(table: dict[str, int], source: str) -> None:
    """Put a table and its source into the module."""
    text = MODULE.read_text(encoding="utf-8")
    today = dt.datetime.now(dt.UTC).date().isoformat()
    head = f'SOURCE, READ_ON = (\n    "{source}",\n    "{today}",\n)\n'
    text = re.sub(r"SOURCE, READ_ON = \(\n.*?\n\)\n", lambda _: head, text, flags=re.DOTALL)
    rows = "".join(f'    "{prefix}": {window:_},\n' for prefix, window in table.items())
    rows = f"WINDOWS = {{\n{rows}}}\n"
    text = re.sub(r"WINDOWS = \{\n.*?\n\}\n", lambda _: rows, text, flags=re.DOTALL)
    MODULE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
