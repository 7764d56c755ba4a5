"""How well search answers: questions on one long document, and whether a preview shows the answer.

    python -P bench/search.py

The document is Python's language reference, as `pydoc` has it. The questions avoid its words, and
chose no constant but the size of a passage (fetchstash/store/_rank.py). A passage answers that
holds the phrase beside its question. ``preview``: among those that a focused preview shows.
"""

import re
import sys
import time
from pathlib import Path
from pydoc_data.topics import topics

from fetchstash.stash._values import passages_body
from fetchstash.store._search import RunTexts, SearchIndex
from fetchstash.store._text import text_in_memory

PREVIEW_CHARS = 2_000

QUESTIONS = Path(__file__).with_suffix(".txt")
"""A question, and the phrase of its answer, on each line."""


def main() -> int:
    text = "\n\n".join(f"# {name}\n\n{topic}" for name, topic in sorted(topics.items()))
    opened, index, texts = text_in_memory(text.encode()), SearchIndex(), RunTexts({"": "art_x"})
    ranks: list[int] = []
    shown = 0
    began = time.perf_counter()
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines()[1:]:
        question, phrase = line.split(" | ")
        if _flat(phrase) not in _flat(text):  # another Python has another text
            continue
        found = index.search(question, texts, lambda _: opened, 8, lambda: False).passages
        answers = [_flat(phrase) in _flat(passage.text) for passage in found]
        ranks.append(answers.index(True) + 1 if True in answers else 0)
        shown += any(answers[: passages_body(found, PREVIEW_CHARS)[1]])
    mrr = sum(1 / rank for rank in ranks if rank) / len(ranks)
    recalls = (sum(0 < rank <= most for rank in ranks) / len(ranks) for most in (1, 3, 8))
    print("questions   MRR    @1    @3    @8  preview  ms each, with the index once")
    print(f"{len(ranks):9} {mrr:5.3f}", *(f"{recall:5.3f}" for recall in recalls), end="")
    print(f"{shown / len(ranks):9.3f}{(time.perf_counter() - began) * 1000 / len(ranks):7.1f}")
    return 0


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).lower()


if __name__ == "__main__":
    sys.exit(main())
