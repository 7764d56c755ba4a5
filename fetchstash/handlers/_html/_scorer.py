"""How likely each block of a page is content: gradient-boosted trees, evaluated without any library.

``model.json`` is made by scripts/train_html.py; ``model.LICENSE.md`` says from what. It holds two models: the first looks at each
block and its surroundings, the second also at what the first thinks of the page around it. A tree is a list of nodes: a leaf is a
number, any other node [feature, threshold, left, right], where left is taken if the feature is at most the threshold. The sum
of the leaves is the log odds.
"""

import json
from functools import cache
from importlib.resources import files
from typing import cast

from fetchstash.handlers._html import _features
from fetchstash.handlers._html._blocks import Block

Tree = list[list[float] | float]
Row = list[float]


@cache
def models() -> dict[str, list[Tree]]:
    """Return the trees of both looks."""
    return cast("dict[str, list[Tree]]", json.loads(files("fetchstash.handlers._html").joinpath("model.json").read_text("utf-8")))


def log_odds(blocks: list[Block], title: str) -> list[float]:
    """Return for each block the log odds that it is content; ``title`` is the page's."""
    trees = models()
    rows = _features.features(blocks, title)
    first = evaluate(trees["first"], rows)
    looked = _features.context(_features.surroundings(blocks), first)
    return evaluate(trees["second"], [[*row, *more] for row, more in zip(rows, looked, strict=True)])


def evaluate(trees: list[Tree], rows: list[Row]) -> list[float]:
    """Return the sum of all trees' leaves for each row of features."""
    columns = list(zip(*rows, strict=True))
    scores = [0.0] * len(rows)
    everything = list(range(len(rows)))
    for tree in trees:
        _add(tree, columns, everything, scores)
    return scores


def _add(tree: Tree, columns: list[tuple[float, ...]], rows: list[int], scores: list[float]) -> None:
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
