"""Train the block scorer of the HTML handler.

    python -P scripts/make/train_html.py CORPUS [--out MODEL.py] [--folds FOLDER] [--pages N]

CORPUS is a folder with index.jsonl (one page a line: set, fold, path, gold), pages/ and gold/;
--pages takes some of them. --out is the model's file, --folds a folder for five models, each of
which has not seen the sites of one fold: bench/handlers_html.py scores them.
Needs lightgbm and numpy, which are in no lock: use an environment of its own with the package's
dependencies.
"""

import gzip
import json
import re
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import Pool
from pathlib import Path
from typing import Any

from fetchstash.handlers._charset import decode
from fetchstash.handlers._html import _blocks, _element, _features, _tree
from scripts.drive.programs import options

FOLDS = 5
GRAM = 4
WORD = re.compile(r"\w+")

# Not in the locks, so without types.
lightgbm: Any = import_module("lightgbm")
np: Any = import_module("numpy")
Array = Any
Model = Any


TREES = 80
TREES_OF_ROUND = 10
"""After each round, the blocks that it decided are left alone."""
HEAD = '''\
"""The trees of the block scorer, written by scripts/make/train_html.py; see model.LICENSE.md.

A function adds the leaves of some trees for a block's features to its score. A tree is an
expression: the leaf on the left is taken if the feature is at most the threshold. As a module they
are compiled once, and cost less than half of going down their nodes in a loop.
"""
# fmt: off
# ruff: noqa: E501

from collections.abc import Callable

Round = Callable[[list[float], float], float]

'''


@dataclass(slots=True)
class Sample:
    """A page as numbers: its fold, and the features, labels and words of its blocks."""

    fold: int
    features: Array
    labels: Array
    sizes: Array


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return WORD.findall(text.lower())


def label(blocks: list[_blocks.Block], gold: str) -> list[float]:
    """Return for each block the share of its words that stand in a GRAM of the gold text.

    A short block that is a whole line of the gold text counts if it is a heading, or beside a block
    that is in the gold text.
    """
    tokens = [words(block.words) for block in blocks]
    page = [token for block in tokens for token in block]
    wanted = words(gold)
    grams = {tuple(wanted[at : at + GRAM]) for at in range(len(wanted) - GRAM + 1)}
    covered = bytearray(len(page))
    for at in range(len(page) - GRAM + 1):
        if tuple(page[at : at + GRAM]) in grams:
            covered[at : at + GRAM] = b"\1" * GRAM
    labels: list[float] = []
    at = 0
    for own in tokens:
        labels.append(sum(covered[at : at + len(own)]) / max(len(own), 1))
        at += len(own)
    lines = {tuple(words(line)) for line in gold.split("\n")}
    for number, block in enumerate(blocks):
        near = labels[max(0, number - 1) : number] + labels[number + 1 : number + 2]
        is_sure = block.kind == _blocks.HEADING or max(near, default=0) >= 0.5
        if labels[number] < 0.5 and tuple(tokens[number]) in lines and is_sure:
            labels[number] = 1.0
    return labels


def read(job: tuple[Path, dict[str, Any]]) -> Sample:
    """Return one page of the corpus as a sample. A job is the corpus and a line of its index."""
    corpus, row = job
    text = decode(gzip.decompress((corpus / row["path"]).read_bytes()))
    page = _tree.parse(_element.check(text)[0])
    gold = json.loads(gzip.decompress((corpus / row["gold"]).read_bytes()))["text"]
    blocks = _blocks.texts(_blocks.cut(page))
    rows, values = _features.features(blocks)
    return Sample(
        row["fold"],
        np.array([[*numbers, *values] for numbers in rows], dtype=np.float32),
        np.array(label(blocks, gold)),
        np.array([len(words(block.words)) for block in blocks], dtype=float),
    )


def fit(samples: list[Sample]) -> Model:
    """Return a model of the blocks of some pages."""
    # The score is the mean over pages of F1 in words: each page weighs the same, a long block
    # more than a short one.
    weights = [(s.sizes + 2) ** 0.7 / ((s.sizes + 2) ** 0.7).sum() * 100 for s in samples]
    data = lightgbm.Dataset(
        np.concatenate([sample.features for sample in samples]),
        label=np.concatenate([sample.labels for sample in samples]),
        weight=np.concatenate(weights),
    )
    settings = {
        "objective": "cross_entropy",
        "num_leaves": 16,
        "learning_rate": 0.12,
        "min_data_in_leaf": 300,
        "lambda_l2": 20,
        "feature_fraction": 0.3,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "max_bin": 127,
        "seed": 1,
        "verbose": -1,
    }
    return lightgbm.train(settings, data, TREES)


def write(path: Path, model: Model) -> None:
    """Write the trees of a model as a module: a function for each round of them."""
    trees = [_written(tree["tree_structure"]) for tree in model.dump_model()["tree_info"]]
    starts = range(0, len(trees), TREES_OF_ROUND)
    rounds = ("+".join(trees[start : start + TREES_OF_ROUND]) for start in starts)
    lines = "".join(f"    lambda row, score: score+{text},\n" for text in rounds)
    path.write_text(f"{HEAD}ROUNDS: tuple[Round, ...] = (\n{lines})\n", "utf-8")


def _written(node: dict[str, Any]) -> str:
    """Return the expression of a tree's leaf for the features in ``row``."""
    if "leaf_value" in node:
        return f"{round(node['leaf_value'], 4)!r}"
    left, right = _written(node["left_child"]), _written(node["right_child"])
    threshold = float(f"{node['threshold']:.5g}")
    return f"({left} if row[{node['split_feature']}]<={threshold!r} else {right})"


def main() -> None:
    """Train."""
    chosen = options(__doc__, "index.jsonl", out=Path(), folds=Path(), pages=0)
    corpus: Path = chosen.folder
    rows = [json.loads(line) for line in (corpus / "index.jsonl").read_text("utf-8").splitlines()]
    if chosen.pages:
        rows = rows[:: max(len(rows) // chosen.pages, 1)]
    with Pool() as pool:
        read_all = pool.map(read, [(corpus, row) for row in rows], chunksize=8)
    samples = [sample for sample in read_all if len(sample.labels)]
    if chosen.out.name:
        write(chosen.out, fit(samples))
    if chosen.folds.name:
        chosen.folds.mkdir(exist_ok=True)
        for fold in range(FOLDS):
            unseen = [sample for sample in samples if sample.fold != fold]
            write(chosen.folds / f"{fold}.py", fit(unseen))


if __name__ == "__main__":
    main()
