"""How likely each block of a page is content: gradient-boosted trees, evaluated without any library.

``model.json`` is made by scripts/train_html.py; ``model.LICENSE.md`` says from what. A tree is a
list of nodes: a leaf is a number, any other node [feature, threshold, left, right], where left is
taken if the feature is at most the threshold. The sum of the leaves is the log odds.
"""

import json
from functools import cache
from importlib.resources import files
from typing import cast

from fetchstash.handlers._html import _features
from fetchstash.handlers._html._blocks import Block

_SETTLED = 2.5
"""Log odds; what a part of the trees are so sure of, the rest would not turn, and it need not be asked."""
_ROUND = 10  # trees

Tree = list[list[float] | float]


@cache
def model() -> list[Tree]:
    """Return the trees."""
    source = files("fetchstash.handlers._html").joinpath("model.json").read_text("utf-8")
    return cast("list[Tree]", json.loads(source)["trees"])


def log_odds(blocks: list[Block]) -> list[float]:
    """Return for each block the log odds that it is content."""
    columns = list(zip(*_features.features(blocks), strict=True))
    scores = [0.0] * len(blocks)
    open_rows = list(range(len(blocks)))
    for number, tree in enumerate(model(), 1):
        _add(tree, columns, open_rows, scores)
        if number % _ROUND == 0:
            open_rows = [row for row in open_rows if -_SETTLED < scores[row] < _SETTLED]
    return scores


def _add(
    tree: Tree, columns: list[tuple[float, ...]], rows: list[int], scores: list[float]
) -> None:
    """Add one tree's leaves to the scores. All rows go down together and part at each node: much cheaper than one by one."""
    pending = [(0, rows)]
    while pending:
        number, here = pending.pop()
        node = tree[number]
        if isinstance(node, list):
            feature, threshold, left, right = node
            column = columns[int(feature)]
            below = [row for row in here if column[row] <= threshold]
            if below:
                pending.append((int(left), below))
            if len(below) < len(here):
                pending.append((int(right), [row for row in here if column[row] > threshold]))
        else:
            for row in here:
                scores[row] += node
