"""Score blocks as content: gradient-boosted trees, evaluated without a library.

scripts/make/train_html.py writes ``model.json``; ``model.LICENSE.md`` names the data. A tree is a
list of nodes. A leaf is a number; any other node is [feature, threshold, left, right], and left is
taken if the feature is at most the threshold. The log odds are the sum of the leaves.
"""

import json
from functools import cache
from importlib.resources import files
from typing import cast

from fetchstash.handlers._html import _features
from fetchstash.handlers._html._blocks import Block

_SETTLED = 2.5
"""Log odds beyond which the remaining trees are skipped: they would not change the decision."""
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
    undecided = list(range(len(blocks)))
    for number, tree in enumerate(model(), 1):
        _add(tree, columns, undecided, scores)
        if number % _ROUND == 0:
            undecided = [row for row in undecided if -_SETTLED < scores[row] < _SETTLED]
    return scores


def _add(
    tree: Tree, columns: list[tuple[float, ...]], rows: list[int], scores: list[float]
) -> None:
    """Add one tree's leaves to the scores.

    All rows go down the tree together, which is much cheaper than one by one.
    """
    pending = [(0, rows)]
    while pending:
        number, rows_here = pending.pop()
        node = tree[number]
        if isinstance(node, list):
            feature, threshold, left, right = node
            column = columns[int(feature)]
            below = [row for row in rows_here if column[row] <= threshold]
            if below:
                pending.append((int(left), below))
            if len(below) < len(rows_here):
                above = [row for row in rows_here if column[row] > threshold]
                pending.append((int(right), above))
        else:
            for row in rows_here:
                scores[row] += node
