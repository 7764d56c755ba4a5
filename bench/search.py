"""How well search answers: questions on one long document, and whether a preview shows the answer.

    python -P bench/search.py

The document is Python's language reference, as `pydoc` has it. The questions avoid its words, and
chose no constant but the size of a passage (fetchstash/store/_rank.py). A passage answers that
holds the phrase beside its question. ``preview``: among those that a focused preview shows.
"""

import re
import sys
import time
from pydoc_data.topics import topics

from fetchstash.stash._values import passages_body
from fetchstash.store._search import RunTexts, SearchIndex
from fetchstash.store._text import text_in_memory

PREVIEW_CHARS = 2_000

QUESTIONS = """
how do I get rid of whitespace around a string | leading and trailing characters removed
why is a default list argument shared between calls | default parameter value is in effect modified
what happens when an assert fails under optimization | code for an assert statement when
which order do parts of an expression run in | All argument expressions are evaluated before the
can I catch several exception types at once | tuple containing an item that is the class
does finally still run if there is a return inside try | "finally" clause is also executed
turn a method into one that belongs to the class, not the instance | Class method objects are
how can I make objects of my class usable as dictionary keys | only required property is that
what keeps two processes from getting the same hash for a string | “salted” with an unpredictable
save memory by not giving each object an attribute dictionary | space saved over using
when is an object's destructor invoked | called when the instance is about to be destroyed
run code each time somebody inherits from my class | is called whenever the containing class is
custom behaviour for isinstance | should be considered a (direct or indirect) instance
how to format a number with thousands separators | use of a comma for a thousands separator
show a value as a percentage | Multiplies the number by 100
center text in a field when formatting | Forces the field to be centered
difference between is and equals | operators "is" and "is not" test for
can comparisons be chained like a < b < c | Comparisons can be chained arbitrarily
how does membership testing work for user defined classes | do not define "__contains__()" but do
what is the value of dividing with floor for negative numbers | mathematical division with the
raise an error while keeping the original cause | second *expression* must be another exception
hide the original exception in the traceback | Exception chaining can be explicitly suppressed
what does star import take in | *public names* defined by a module
relative import of a sibling package with dots | One leading dot means the current package
assign to a variable of the enclosing function | previously bound variables in the nearest
skip to the next round of a loop | continues with the next cycle of
how does with close the file when an error occurs | return value was true, the exception is
pattern matching: what does the underscore mean | wildcard pattern always succeeds
match an object by its attributes in a case | keyword patterns are present
extra condition on a case block | corresponding guard (if present)
how to write an anonymous function | used to create anonymous functions
wait for a coroutine | Suspend the execution of *coroutine* on an *awaitable*
debugger: stop at a line only if a condition is true | expression which must evaluate to true before
debugger: go on until the function returns | Continue execution until the current function returns
debugger: look at the code around the current line | List source code for the current file
debugger after a crash | enter post-mortem debugging
split text into lines | breaking at line boundaries
check whether text starts with one of several prefixes | can also be a tuple of prefixes
join a list of strings | concatenation of the strings in *iterable*
case-insensitive comparison of unicode text | Casefolding is similar to lowercasing
convert characters by a table | mapped through the given translation table
raw string with a backslash at the end | cannot end in a single backslash
get a default when a key is missing | Return the value for *key* if *key* is in the dictionary, else
merge two dictionaries into a new one | merged keys and values
do dictionaries remember insertion order | Dictionaries preserve insertion order
sort a list without making a copy | sorts the list in place
remove and return the last item | last item is removed and returned
reverse a list in place | modifies the sequence in place for economy of space when reversing
an immutable sequence of numbers that takes little memory | always take the same (small) amount of
which values count as false | considered false
can integers overflow | unlimited range
complex numbers: get the real and imaginary parts | retrieved through the read-only attributes
names with two leading underscores in a class | name mangling
letters allowed in variable names | based on the Unicode standard annex
what is the docstring attribute | "__doc__" attribute and therefore the function
compute an attribute lazily when it is not found | Called when the default attribute access fails
descriptor that intercepts setting an attribute | to set the attribute on an instance
change what the addition operator does on the right-hand operand | reflected (swapped) operands
type hints on variables without a value | annotated assignment
delete an item of a sequence | Deletion of a target list
local variable referenced before assignment | exception is raised. "UnboundLocalError"
keyword only parameters | Parameters after “"*"” or “"*identifier"” are keyword-only
parameters that can be passed only by position | positional-only
decorators that are applied in what order | Multiple decorators are applied in nested fashion
group exceptions and handle a part of them | Each exception in the group is handled by at most one
turn bytes of an object into readable text for debugging | typically used for debugging, so it is
why does my class stop being hashable after I define equality | will have its "__hash__()"
emulate a number when used as a list index | to losslessly convert the numeric object to an integer
customise what import statement does per module attribute | MOD
how can strings be repeated | values of *n* less than "0"
binding a name inside an expression | assignment expression
difference of del on a name and on an attribute | removes the binding of that name
debugger: define a shortcut for a command | Create an alias called
debugger: change the value of a local and go on | jump back and execute code again
replace only the first occurrences of a substring | only the first *count* occurrences are replaced
pad a number string with zeros on the left | ASCII "'0'" digits to make a string of length
test whether a string is made of digits | all characters in the string are digits
reload breakpoints when debugging starts | .pdbrc
which class is the metaclass | appropriate metaclass
weak references with slots | do not support "weak references"
when are default values of parameters computed | evaluated from left to right when the function
"""
"""A question, and the phrase of its answer."""


def main() -> int:
    text = "\n\n".join(f"# {name}\n\n{topic}" for name, topic in sorted(topics.items()))
    opened, index, texts = text_in_memory(text.encode()), SearchIndex(), RunTexts({"": "art_x"})
    ranks: list[int] = []
    shown = 0
    began = time.perf_counter()
    for line in QUESTIONS.strip().splitlines():
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
