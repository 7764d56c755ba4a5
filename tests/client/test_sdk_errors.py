"""An SDK's exception is read as its bare sentence is, however often it repeats that sentence.

The first half builds exceptions with the attributes of the SDKs', and needs none of them. The
second has the SDKs make them, of what a provider on loopback answers.
"""

# ruff: noqa: E501 - an error is quoted on one line, as it came

import json
from collections.abc import Callable, Generator
from typing import Any

import pytest

from fetchstash.client import Recovery, Request, Verdict, classify, learned_windows
from tests.client import test_classify
from tests.client.fakes import conversation, prose
from tests.client.loopback import Loopback
from tests.client.sdk_errors import APIS, envelope, error_of
from tests.client.sdks import needs

IN_PARTS = "This model's maximum context length is 128000 tokens. However, you requested 140000 tokens (80000 in the messages, 60000 in the completion)."
AZURE = "This model's maximum context length is 128000 tokens. However, your messages resulted in 131313 tokens (130000 in the messages, 1313 in the functions). Please reduce the length of the messages or functions."
WORDINGS = [
    (400, IN_PARTS),
    (400, AZURE),
    *((int(row["status"] or 400), row["words"]) for row in test_classify.WORDINGS),
]


class Said(Exception):
    """An error with the attributes that an SDK gives it."""

    def __init__(self, words: str, **attributes: Any) -> None:
        super().__init__(words)
        self.message = words
        vars(self).update(attributes)


class Answer:
    """A response of an HTTP library."""

    def __init__(self, status: int, text: str) -> None:
        self.status_code = status
        self.text = text


def _http(status: int, body: Any) -> Said:
    words = (
        f"Client error '{status} Bad Request' for url 'http://127.0.0.1:33863/v1/chat/completions'"
    )
    return Said(words, response=Answer(status, json.dumps(body)))


def _caused_by(error: Said, cause: Said) -> Said:
    error.__cause__ = cause
    return error


def _openai(status: int, words: str) -> Said:
    """openai 3 unwraps the message; langchain raises a copy of the error from the error."""
    body = {"message": words, "type": "invalid_request_error", "param": None, "code": None}
    answer = Answer(status, json.dumps({"error": body}))
    error = Said(f"Error code: {status} - {words}", body=body, response=answer, status_code=status)
    return _caused_by(error, _http(status, {"error": body}))


def _anthropic(status: int, words: str) -> Said:
    """As openai 2: the whole body stands in the message."""
    body = {"type": "error", "error": {"message": words, "type": "invalid_request_error"}}
    answer = Answer(status, json.dumps(body))
    text = f"Error code: {status} - {body}"
    return Said(text, body=body, response=answer, status_code=status, api_message=words)


def _gemini(status: int, words: str) -> Said:
    body = {"error": {"code": status, "message": words, "status": "INVALID_ARGUMENT"}}
    text = f"{status} INVALID_ARGUMENT. {body}"
    return Said(text, details=body, response=Answer(status, json.dumps(body)), code=status)


def _litellm(status: int, words: str) -> Said:
    """Each layer quotes the one below."""
    text = f"litellm.BadRequestError: OpenAIException - {words}"
    error = Said(text, status_code=status, llm_provider="openai")
    return _caused_by(error, _caused_by(_anthropic(status, words), _openai(status, words)))


def _pydantic_ai(status: int, words: str) -> Said:
    body = {"message": words, "type": "invalid_request_error", "param": None, "code": None}
    text = f"status_code: {status}, model_name: m, body: {body}"
    return _caused_by(Said(text, status_code=status, body=body), _openai(status, words))


SHAPES = [_openai, _anthropic, _gemini, _litellm, _pydantic_ai]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)


def reading(verdict: Verdict) -> tuple[Any, ...]:
    """Return what a verdict decides and measures."""
    sizes = (verdict.limit, verdict.requested_input, verdict.requested_output)
    return (verdict.kind, verdict.action, *sizes)


def bare(status: int, words: str) -> tuple[Any, ...]:
    """Return how a sentence is read by itself."""
    return reading(classify(test_classify.ProviderError(words, status)))


def test_sizes_that_are_stated_in_parts_are_read_from_a_bare_sentence() -> None:
    assert bare(400, IN_PARTS) == ("overflow_tokens", "clamp_output", 128_000, 80_000, 60_000)
    assert bare(400, AZURE) == ("overflow_tokens", "rewrite", 128_000, 131_313, None)


@pytest.mark.long
@shapes
def test_an_error_that_repeats_its_sentence_is_read_as_the_sentence(
    shape: Callable[[int, str], Said],
) -> None:
    for status, words in WORDINGS:
        assert reading(classify(shape(status, words))) == bare(status, words), words


@shapes
def test_the_window_that_a_repeated_sentence_teaches_is_the_one_it_states(
    shape: Callable[[int, str], Said],
) -> None:
    request = Request(conversation(prose(400_000)), model="m", endpoint=shape.__name__)
    answers = iter([shape(400, AZURE), "good"])

    def send(_: Any) -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert Recovery().call(send, request) == "good"
    learned = learned_windows.of(request)
    assert learned
    assert 60_000 < learned < 128_000


@pytest.mark.parametrize("name", ["APIConnectionError", "MidStreamFallbackError"])
def test_a_status_that_litellm_made_up_hides_no_overflow_and_a_providers_own_does(
    name: str,
) -> None:
    error = type(name, (Said,), {"__module__": "litellm.exceptions"})
    words = f"litellm.{name}: OpenAIException - {AZURE}"
    assert classify(error(words, status_code=500)).limit == 128_000
    original = Said(AZURE, status_code=503)
    assert not classify(error(words, status_code=503, original_exception=original)).overflow


@pytest.mark.parametrize(
    "shown", ["Error code: 400", "litellm.BadRequestError: CerebrasException - Error code: 400"]
)
def test_a_400_without_a_body_is_an_overflow_as_pythons_sdks_word_it(shown: str) -> None:
    assert classify(Said(shown, status_code=400)).rule_id == "empty-400"
    assert not classify(Said(shown, status_code=400), "openai").overflow


@pytest.fixture(scope="module")
def provider() -> Generator[Loopback]:
    with Loopback("good") as running:
        yield running


REAL = [
    pytest.param(sdk, api, marks=needs(sdk), id=f"{sdk}-{api}") for sdk in APIS for api in APIS[sdk]
]
SHARE = 4
"""Each API has this share of the wordings, and all of them go through some SDK."""


# The SDKs and what they bring in warn of their own affairs.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("sdk", "api"), REAL)
def test_an_error_that_the_real_sdk_raises_is_read_as_the_bare_sentence(
    sdk: str, api: str, provider: Loopback
) -> None:
    first = list(APIS[sdk]).index(api) + list(APIS).index(sdk)
    for status, words in (*WORDINGS[:2], *WORDINGS[first % SHARE :: SHARE]):
        body = words if words.startswith("{") else envelope(api, status, words)
        error = error_of(sdk, api, provider, (status, body))
        assert reading(classify(error)) == bare(status, words), (words, error)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("sdk", "api"), [one for one in REAL if str(one.id).endswith(("-openai", "-anthropic"))]
)
def test_an_error_that_the_real_sdk_raises_inside_a_stream_is_read_as_the_bare_sentence(
    sdk: str, api: str, provider: Loopback
) -> None:
    for words in (IN_PARTS, AZURE):
        error = error_of(sdk, api, provider, (200, envelope(api, 400, words)))
        assert reading(classify(error)) == bare(400, words), error
