"""Draw a terminal from the recipes, as a picture that plays.

The text is that of docs/recipes.md, whose commands were run and are run again by a test. What a
command prints appears behind it, and the picture begins anew at the end.
"""

import re
from html import escape
from itertools import count

LINE, LEFT, TOP, CHAR = 19, 18, 46, 7.83
"""Pixels: between lines, before them, above the first, and of one character of 13 pixels."""
SECONDS_BEFORE, SECONDS_OF_READING, SECONDS_AT_END = 1.0, 2.0, 5.0
_BLOCK = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
_STYLE = """text{white-space:pre}.c{fill:#fff;font-weight:bold}.p{fill:#3fb950}.s{fill:#8b949e}"""


def picture(recipes: str) -> str:
    """Return the first block of the recipes as an SVG of a terminal."""
    block = _BLOCK.search(recipes)
    assert block, "docs/recipes.md has no block of a terminal"
    lines = block[1].rstrip().split("\n")
    steps: list[list[str]] = []
    for line in lines:
        if line.startswith("$ "):
            steps += [[line], []]
        else:
            steps[-1].append(line)
    starts = [
        SECONDS_BEFORE + number // 2 * (1 + SECONDS_OF_READING) + number % 2
        for number in range(len(steps))
    ]
    whole = starts[-1] + SECONDS_AT_END
    rules = [_STYLE, "@media (prefers-reduced-motion:no-preference){"]
    drawn: list[str] = []
    places = count(TOP, LINE)
    for number, (step, start) in enumerate(zip(steps, starts, strict=True)):
        at = 100 * start / whole
        rules.append(f"#g{number}{{animation:k{number} {whole:g}s step-end infinite}}")
        rules.append(f"@keyframes k{number}{{0%{{opacity:0}}{at:.2f}%{{opacity:1}}}}")
        rows = [_row(line, next(places)) for line in step]
        drawn.append(f'<g id="g{number}">\n' + "\n".join(filter(None, rows)) + "\n</g>")
    width, height = round(2 * LEFT + 92 * CHAR), TOP + LINE * len(lines)
    dots = "".join(
        f'<circle cx="{LEFT + 4 + 18 * number}" cy="18" r="5" fill="{color}"/>'
        for number, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    title = "A terminal: fetchstash fetches a long PDF, finds a line in it and reads its page"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="13" '
        f'fill="#c9d1d9">\n<title>{title}</title>\n<style>{"".join(rules)}}}</style>\n'
        f'<rect width="{width}" height="{height}" rx="9" fill="#0d1117"/>\n{dots}\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


def _row(line: str, y: int) -> str:
    """Return one line of the terminal; nothing for an empty one."""
    if line.startswith("$ "):
        command = f'<tspan class="p">$</tspan><tspan class="c">{escape(line[1:])}</tspan>'
        return f'<text x="{LEFT}" y="{y}">{command}</text>'
    is_ours = re.match(r"@\d+ is |A preview of |  fetchstash |\w{7}, page ", line)
    name = ' class="s"' if is_ours else ""
    return f'<text x="{LEFT}" y="{y}"{name}>{escape(line)}</text>' if line else ""
