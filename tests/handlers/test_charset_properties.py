"""Whatever the bytes and the label, a text comes out; and what is UTF-8 comes out as it is."""

from hypothesis import example, given, settings, strategies as st

from fetchstash.handlers import charset_named, decode

TEXTS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=300)
LABELS = st.one_of(
    st.just(""),
    st.sampled_from(["utf-8", "iso-8859-1", "shift_jis", "gbk", "uu", "rot13", "hex", "\x00"]),
    st.text(max_size=40),
)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), LABELS)
def test_any_bytes_under_any_label_become_text(data: bytes, label: str) -> None:
    decode(data, label).encode("utf-8", "surrogatepass")
    charset_named(label)


@settings(max_examples=200, deadline=None)
@given(TEXTS)
@example("\ufffd")
def test_utf_8_with_its_label_stays_as_it_is(text: str) -> None:
    assert decode(text.encode(), "utf-8") == text.removeprefix("\ufeff")
