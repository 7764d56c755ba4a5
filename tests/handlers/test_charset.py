"""Texts without a true label are read by their letters, and any bytes become text."""
# ruff: noqa: E501 - quotes texts

import pytest
from hypothesis import example, given, settings, strategies as st

from fetchstash.handlers import charset_named, decode

TEXTS = {
    "French": ("cp1252 mac_roman cp850", "Le café déjà fermé, il a été décidé que la réunion aura lieu près de la gare à midi. "),
    "German": ("cp1252 mac_roman cp850", "Die Fähre fährt über den großen Fluß, während die Mädchen schöne Lieder hören. "),
    "Spanish": ("cp1252", "¿Dónde está la estación? El niño comió una manzana el año pasado. "),
    "Italian": ("cp1252", "Perché la città è così bella? L'università è più grande, però no. "),
    "Portuguese": ("cp1252", "A reunião será amanhã às três. Não há razão para a exceção. "),
    "Swedish": ("cp1252", "Färjan går på lördag från Göteborg. Höga vågor är vanliga på hösten. "),
    "Danish": ("cp1252", "Færgen går på lørdag til København. Søndag er der også en tur på åen. "),
    "Icelandic": ("cp1252", "Fólkið bíður á bryggjunni þar til það fær að fara um borð í ferjuna. "),
    "English with signs": ("cp1252", "“It’s a naïve café,” she said — twice… The résumé cost £5. "),
    "Polish": ("cp1250 iso8859_2", "Zażółć gęślą jaźń. Książki są na półce, a łódź śpi przy brzegu. "),
    "Czech": ("cp1250 iso8859_2", "Příliš žluťoučký kůň úpěl ďábelské ódy, až večer odešel domů. "),
    "Hungarian": ("cp1250 iso8859_2", "Árvíztűrő tükörfúrógép. A komp este hatkor indul éjfélig. "),
    "Romanian": ("cp1250", "Feribotul pleacă la ora şase din port şi soseşte în oraşul vecin. "),
    "Turkish": ("cp1254", "Feribot akşam altıda limandan ayrılıyor, çünkü hava güzel değil mi? "),
    "Lithuanian": ("cp1257", "Žmonės laukia ąžuolų pavėsyje, kol įlips į keltą šeštą valandą. "),
    "Russian": ("cp1251 koi8_r", "Паром отходит вечером из порта, и люди ждут на причале. "),
}  # fmt: skip
CASES = [
    (language, charset) for language, (charsets, _) in TEXTS.items() for charset in charsets.split()
]


@pytest.mark.parametrize(("language", "charset"), CASES)
@pytest.mark.parametrize("label", ["", "utf-8"])
def test_a_text_is_read_in_the_charset_of_its_letters(
    language: str, charset: str, label: str
) -> None:
    text = TEXTS[language][1] * 3
    assert decode(text.encode(charset), label) == text


def test_prices_and_fractions_between_ascii_words_are_no_letters() -> None:
    text = "Rooms from €90 to €120, breakfast €12½; 3 × 4 m, café and piñata. ©\n" * 4
    assert decode(text.encode("cp1252")) == text


ANY_TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=300)
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
@given(ANY_TEXT)
@example("\ufffd")
def test_utf_8_with_its_label_stays_as_it_is(text: str) -> None:
    assert decode(text.encode(), "utf-8") == text.removeprefix("\ufeff")
