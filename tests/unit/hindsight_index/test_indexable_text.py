"""What Hindsight keeps of a text."""

from hindsight_index import Document, indexable
from hypothesis import given
from hypothesis import strategies as st


@given(text=st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="⟦⟧"), min_size=1))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert indexable(text) == text
    assert Document(text, 1).holds(text)


@given(
    text=st.lists(st.sampled_from(["⟦hs-att:", "⟦hs-", "att:", "a1", "⟧", "\x07", "\t", "茶"])).map("".join)
)
def test_what_stays_would_stay_again(text: str) -> None:
    kept = indexable(text)
    assert indexable(kept) == kept
    assert "\x07" not in kept


def test_a_document_holds_a_text_only_with_its_words_and_a_unit() -> None:
    assert Document("tea", 1).holds("tea")
    assert not Document("tea", 0).holds("tea")
    assert not Document("coffee", 1).holds("tea")
    assert not Document(None, 1).holds("tea")
