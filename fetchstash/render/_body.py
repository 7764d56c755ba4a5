"""What stands between the fences of a fetch: the whole text where it fits, else a preview, and how much of the text that is."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from fetchstash import tokens
from fetchstash.ranges import Preview
from fetchstash.render._texts import Subject
from fetchstash.render._view import Host
from fetchstash.text import TruncationInfo, head_and_tail, largest, prefix_length, whole_lines
from fetchstash.tokens import TokenCount


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came of one URL.

    ``text`` is the beginning of the artifact's text, one character more than the limit if there are
    more. ``glimpse`` shows a long text better than its beginning does (without text: it does not):
    the handler's preview, or the passages that match a focus, best first; ``lines`` are the best
    one's, with some around them. ``unfocused``: no passage has a word of the focus. ``ending`` is
    the end of a text whose first and last lines are shown ("": its beginning alone).
    """

    subject: Subject
    text: str = ""
    glimpse: Preview = field(default_factory=Preview)
    ending: str = ""
    lines: tuple[int, int] | None = None
    unfocused: bool = False
    picture: tuple[bytes, str] | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """The body for one artifact; where it is a preview, how much of the text that is, and where reading goes on.

    ``offset`` is where the body ended if it is the beginning of the text, else 0.
    """

    body: str
    info: TruncationInfo | None = None
    offset: int = 0

    def told(self, facts: Mapping[str, object]) -> Mapping[str, object]:
        """Return ``facts`` with what is shown, where that is not all."""
        return facts if self.info is None else {**facts, "shown": asdict(self.info)}


def shown_of(host: Host, arrival: Arrival, limit: int) -> Shown:
    """Return the whole text if it is within ``limit``, else the preview."""
    subject = arrival.subject
    if len(arrival.text) == subject.chars and host.measure(arrival.text) <= limit:
        return Shown(arrival.text)
    bound = min(host.limits.preview_chars, limit)
    offset = 0
    glimpse = arrival.glimpse
    if glimpse.text:
        body, glimpse = _cut_glimpse(host, glimpse, bound)
    elif arrival.ending:
        body, lines = _ends(host, arrival, bound)
        glimpse = Preview(lines_shown=lines)
    else:
        body = arrival.text[: _prefix(host, arrival.text, bound)]
        offset = len(body)
        glimpse = Preview(lines_shown=body.count("\n") + (not body.endswith("\n")))
    shown = TokenCount(
        tokens.estimate(body), exact=False
    )  # counting would load the vocabulary into the server
    ended = len(body) >= host.preview.max_total_output
    info = TruncationInfo.of(
        glimpse, subject.lines, shown, subject.tokens, total_output_limit_reached=ended
    )
    return Shown(body, info, offset)


def _cut_glimpse(host: Host, glimpse: Preview, bound: int) -> tuple[str, Preview]:
    """Return what there is room for, and the glimpse that this is: of one that had to be cut, nobody counted the rows."""
    for one in (glimpse, glimpse.without_sample()):
        if _prefix(host, one.whole, bound) == len(one.whole):
            return one.whole, one
    end = _prefix(host, glimpse.text, bound)
    return glimpse.text[: whole_lines(glimpse.text, end) or end].removesuffix("\n"), Preview()


def _ends(host: Host, arrival: Arrival, bound: int) -> tuple[str, int]:
    """Return first and last lines of a text within ``bound``, and how many they are."""
    lines = max(arrival.subject.lines, 1)
    width = host.preview.max_line_length if lines > 1 else bound
    head, tail = arrival.text.split("\n"), arrival.ending.removesuffix("\n").split("\n")
    # What the cuts through the text left of a line is no line, unless more of it could not be
    # shown.
    head, tail = head if len(head[-1]) > width else head[:-1], tail[1:]

    def fits(text: str) -> bool:
        room = len(text) <= host.preview.max_total_output and host.measure(text) <= bound
        return room and tokens.estimate(text) <= host.preview.max_tokens_per_file

    return head_and_tail(head, tail, lines, host.preview.lines, width, fits)


def _prefix(host: Host, text: str, bound: int) -> int:
    """Return how many characters of ``text`` fit ``bound`` and all limits of previews but those of a line's length."""
    limits = host.preview
    end = prefix_length(text[: limits.max_total_output], bound, host.measure)
    lines = text[:end].split("\n", limits.max_lines)
    if len(lines) > limits.max_lines:
        end -= len(lines[-1])
    if tokens.estimate(text[:end]) > limits.max_tokens_per_file:
        end = largest(
            end, lambda length: tokens.estimate(text[:length]) <= limits.max_tokens_per_file
        )
    return end
