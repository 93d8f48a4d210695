"""Which analyser reads a language, what a text looks like before it does, and which languages a collection has."""

from __future__ import annotations

import pytest

from services.retriever.errors import InvalidRequest
from services.retriever.languages import ANALYSERS, FOLDED, analyser_of, analysers_of, prepared
from services.retriever.models import Activation, Pointer, PointerEntry, RevisionKey
from services.retriever.revision_map import RevisionMap
from services.retriever.validation import check_activation
from tests.unit.retriever.core_over_fakes import Core


@pytest.mark.parametrize(
    ("language", "analyser"),
    [
        ("en", "en"),
        ("pt-BR", "pt"),
        ("NB", "no"),
        ("iw", "he"),
        ("arz", "ar"),
        ("ja", FOLDED),
        ("tlh", FOLDED),
        ("", "en"),
    ],
)
def test_a_language_has_one_analyser(language: str, analyser: str) -> None:
    assert analyser_of(language) == analyser


def test_a_query_is_analysed_in_each_language_once_and_always_in_that_of_unknown_text() -> None:
    assert analysers_of(("ru", "zh", "ja", "he")) == ("ru", FOLDED, "he", "en")
    assert analysers_of(()) == ANALYSERS


@pytest.mark.parametrize(
    ("analyser", "text", "seen"),
    [
        ("en", "Plain text, as it is.", "Plain text, as it is."),
        ("de", "Ma\u0308dchen", "M\u00e4dchen"),
        ("ru", "ещё, йод", "еще, йод"),
        ("ar", "إِدَارَة مدينــة على والمكتبة والد", "ادارة مدينة علي المكتبة والد"),
        ("he", "שָׁלוֹם הַמִּסְמָכִים מסמך לבית שמן", "לומ סמכ סמכ בית שמנ"),
        ("en", "Tokyo 東京都 is", "Tokyo  東京 京都  is"),
        (FOLDED, "終 ＡＢＣ Łódź", "終 abc łodz"),
    ],
)
def test_text_is_prepared_for_its_analyser(analyser: str, text: str, seen: str) -> None:
    assert prepared(text, analyser).split() == seen.split()


@pytest.mark.parametrize("analyser", ANALYSERS)
def test_any_text_can_be_prepared(analyser: str) -> None:
    for text in ("", "\x00", "\ud83d", "ם", "وال", "👩‍👩‍👧", "a\u0301" * 1000, "ا" * 10_000):
        assert isinstance(prepared(text, analyser), str)


def pointer(version: int, document_id: str, *languages: str, deleted: bool = False) -> PointerEntry:
    value = Pointer("" if deleted else f"r{version}", version, "default", 1, 0, deleted, languages)
    return PointerEntry("local", document_id, value, version)


def test_a_collection_has_the_languages_of_its_active_documents() -> None:
    revisions = RevisionMap()
    for entry in (pointer(1, "d1", "de"), pointer(2, "d2", "en", "fr"), pointer(3, "d3", "en")):
        revisions.apply(entry)
    assert revisions.languages("local", ("default", "empty")) == ("en", "de", "fr")
    assert revisions.languages("rival", ("default",)) == ()
    revisions.apply(pointer(4, "d2", "he"))
    revisions.apply(pointer(5, "d1", deleted=True))
    assert set(revisions.languages("local", ("default",))) == {"en", "he"}


async def test_activation_keeps_the_languages_until_the_document_is_deleted(core: Core) -> None:
    key = RevisionKey("local", "d1", "r1")
    count = await core.index(key, ["solar"])
    await core.switch.activate(Activation(key, "default", 1, count, ("ru", "en")))
    assert core.revisions.languages("local", ("default",)) == ("ru", "en")
    await core.search("solar")
    await core.switch.delete("local", "d1")
    assert core.revisions.languages("local", ("default",)) == ()


@pytest.mark.parametrize("languages", [("english",), ("",), ("e n",), ("de",) * 17])
def test_activation_with_what_is_no_language_is_refused(languages: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequest, match="languages"):
        check_activation(Activation(RevisionKey("local", "d1", "r1"), "default", 1, 1, languages))
