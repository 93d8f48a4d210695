"""Which analyser reads a language, and which languages a collection has."""

from __future__ import annotations

import pytest

from services.retriever.analysis.analyser import analyser_of, analysers_of
from services.retriever.analysis.stems import ANALYSERS, FOLDED
from services.retriever.errors import InvalidRequest
from services.retriever.models import Activation, Pointer, PointerEntry, RevisionKey
from services.retriever.revisions.revision_map import RevisionMap
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


def test_a_query_is_analysed_in_each_language_once() -> None:
    assert analysers_of(("ru", "zh", "ja", "he")) == ("ru", FOLDED, "he")
    assert analysers_of(()) == ANALYSERS


def pointer(version: int, document_id: str, *languages: str, deleted: bool = False) -> PointerEntry:
    value = Pointer("" if deleted else f"r{version}", version, "default", 1, 0, deleted, languages)
    return PointerEntry("local", document_id, value, version)


def test_a_collection_has_the_languages_of_its_active_documents() -> None:
    revisions = RevisionMap()
    for entry in (pointer(1, "d1", "de"), pointer(2, "d2", "en", "fr"), pointer(3, "d3", "en")):
        revisions.apply(entry)
    assert list(revisions.languages("local", ("default", "empty")).items()) == [("en", 2), ("de", 1), ("fr", 1)]
    assert revisions.languages("rival", ("default",)) == {}
    revisions.apply(pointer(4, "d2", "he"))
    revisions.apply(pointer(5, "d1", deleted=True))
    assert set(revisions.languages("local", ("default",))) == {"en", "he"}


async def test_activation_keeps_the_languages_until_the_document_is_deleted(core: Core) -> None:
    key = RevisionKey("local", "d1", "r1")
    count = await core.index(key, ["solar"])
    await core.switch.activate(Activation(key, "default", 1, count, ("ru", "en")))
    assert core.revisions.languages("local", ("default",)) == {"ru": 1, "en": 1}
    await core.search("solar")
    await core.switch.delete("local", "d1")
    assert core.revisions.languages("local", ("default",)) == {}


@pytest.mark.parametrize("languages", [("english",), ("",), ("e n",), ("de",) * 17])
def test_activation_with_what_is_no_language_is_refused(languages: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequest, match="languages"):
        check_activation(Activation(RevisionKey("local", "d1", "r1"), "default", 1, 1, languages))
