"""Questions that take two steps: reading them, finding the name between the steps, the second search and the answer of both."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from kit.errors import Unavailable
from kit.language.terms import tokens
from services.orchestrator.answering.drafting import passage_of
from services.orchestrator.answering.extractive import ExtractiveSettings, answer, find_bridge, read_two_steps
from services.orchestrator.log.events import Evidence, Retrieval
from services.orchestrator.models import SearchQuery
from services.orchestrator.modes.second_search import PART, search_in_two_steps

TEXTS = (
    "Acme Tools was founded by Anna Berg in 1990 and makes saws.",
    "Anna Berg was born in Oslo, where she studied physics.",
    "The founder of a firm needs patience.",
    "The Silent Harbour is a novel that was written by Jonas Lind.",
    "Jonas Lind died in 1974 after a long illness.",
    "Lund is the capital of Freeland.",
    "Lund has 410000 inhabitants and two rivers.",
    "The Aurora is a small car that Nordwerk builds.",
    "Nordwerk has its factory in Kiel.",
    "The expedition to Mount Veer was led by Captain Mira Holt.",
    "Mira Holt works at the University of Turin.",
    "The steam pump was invented by Karl Odin in 1801.",
    "Karl Odin lived in a mill near Graz.",
    "The architect who designed the Glass Hall was Ruth Amsel.",
    "Ruth Amsel studied in Vienna.",
    "The ferry Seagull is owned by Island Lines.",
    "Island Lines is based in Emden.",
    "Peter Falk is the mayor of Westerholt.",
    "Peter Falk was born in 1961.",
    "The opera Winter Gate was composed by Lea Tomas.",
    "Lea Tomas is buried in Prague.",
    "Der Gründer von Feinwerk ist Otto Brand.",
    "Otto Brand wurde in Ulm geboren.",
    "Die Hauptstadt von Nordland ist Felsen.",
    "In Felsen leben 90000 Menschen.",
    "The painter of the Blue Door is Ines Moll.",
    "Ines Moll lives in Lisbon.",
    "The winner of the Harbour Race was the crew of Tom Reed.",
    "Tom Reed retired in 2011.",
    "The Ember Prize is awarded by the Hale Institute.",
)


@dataclass(frozen=True)
class Asked:
    """A question, the name that it takes, and what the answer holds."""

    question: str
    name: str
    holds: str


ASKED = (
    Asked("Where was the founder of Acme Tools born?", "Anna Berg", "Oslo"),
    Asked("What did the founder of Acme Tools study?", "Anna Berg", "physics"),
    Asked("When did the author of The Silent Harbour die?", "Jonas Lind", "1974"),
    Asked("How many inhabitants does the capital of Freeland have?", "Lund", "410000"),
    Asked("Where does the company that builds the Aurora have its factory?", "Nordwerk", "Kiel"),
    Asked("At which university does the leader of the expedition to Mount Veer work?", "Mira Holt", "Turin"),
    Asked("Where did the inventor of the steam pump live?", "Karl Odin", "Graz"),
    Asked("In which city did the architect of the Glass Hall study?", "Ruth Amsel", "Vienna"),
    Asked("Where is the owner of the ferry Seagull based?", "Island Lines", "Emden"),
    Asked("In what year was the mayor of Westerholt born?", "Peter Falk", "1961"),
    Asked("Where is the composer of Winter Gate buried?", "Lea Tomas", "Prague"),
    Asked("Wo wurde der Gründer von Feinwerk geboren?", "Otto Brand", "Ulm"),
    Asked("Wie viele Menschen leben in der Hauptstadt von Nordland?", "Felsen", "90000"),
    Asked("In which city does the painter of the Blue Door live?", "Ines Moll", "Lisbon"),
    Asked("When did the winner of the Harbour Race retire?", "Tom Reed", "2011"),
)
ONE_STEP = (
    "Who is the founder of Acme Tools?",
    "What is the name of the author of The Silent Harbour?",
    "What is the capital of Freeland?",
    "When was Acme Tools founded?",
    "How many inhabitants does Lund have?",
    "Where was Anna Berg born?",
    "Wie heißt die Hauptstadt von Nordland?",
    "the founder of Acme Tools",
    "Who became the mayor of Westerholt?",
    "How long was Lund the capital of Freeland?",
    "What is the boiling point of ethanol?",
)


class WordSearcher:
    """Finds passages by the share of the query's words that they hold; fails from the call on that it is told."""

    def __init__(self, texts: Sequence[str] = TEXTS, fails_at: int = 99) -> None:
        self._texts = texts
        self._fails_at = fails_at
        self.queries: list[str] = []

    async def search(self, query: SearchQuery) -> Retrieval:
        self.queries.append(query.queries[0])
        if len(self.queries) >= self._fails_at:
            raise Unavailable("both engines are down", reason="SEARCH_UNAVAILABLE")
        asked = _content(query.queries[0])
        shares = [(len(asked & _content(text)) / len(asked), number) for number, text in enumerate(self._texts)]
        best = sorted((each for each in shares if each[0] > 0), key=lambda each: (-each[0], each[1]))[: query.top_k]
        return Retrieval(
            tuple(
                Evidence(
                    rank, f"c{number}", f"d{number}", f"{number}.txt", self._texts[number], dense_score=0.6 * share
                )
                for rank, (share, number) in enumerate(best, start=1)
            ),
            timings_ms={"total": 1.0},
        )


class ContentScorer:
    """Similarity by the share of the question's content words, as high as an embedder's for a sentence that has them all."""

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        asked = _content(question)
        return [0.8 * len(asked & _content(text)) / len(asked) for text in sentences]


def _content(text: str) -> set[str]:
    return {token.stem for token in tokens(text) if not token.is_stopword}


def _search(question: str, searcher: WordSearcher) -> Retrieval:
    return asyncio.run(search_in_two_steps(searcher, SearchQuery((question,), ("default",), top_k=4), question))


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.question)
def test_answer_of_two_steps_cites_both_passages(asked: Asked) -> None:
    searcher = WordSearcher()
    retrieval = _search(asked.question, searcher)
    assert len(searcher.queries) == 2
    assert asked.name in searcher.queries[1]
    assert [each.number for each in retrieval.evidence] == list(range(1, len(retrieval.evidence) + 1))
    assert len(retrieval.evidence) <= 4
    passages = [passage_of(each) for each in retrieval.evidence]
    found = asyncio.run(answer(asked.question, passages, ContentScorer(), ExtractiveSettings()))
    assert found.answerable
    assert asked.name in found.sentences[0].text
    assert any(asked.holds in each.text for each in found.sentences[1:])
    assert len({each.number for each in found.sentences}) > 1


@pytest.mark.parametrize("question", ONE_STEP)
def test_question_of_one_step_is_searched_for_once(question: str) -> None:
    searcher = WordSearcher()
    _search(question, searcher)
    assert searcher.queries == [question]


def test_question_that_one_sentence_holds_is_searched_for_once() -> None:
    searcher = WordSearcher(("The founder of Acme Tools, Anna Berg, was born in Oslo.", *TEXTS))
    _search("Where was the founder of Acme Tools born?", searcher)
    assert len(searcher.queries) == 1


def test_name_that_no_passage_tells_is_not_searched_for() -> None:
    searcher = WordSearcher()
    _search("Where was the founder of Atlantis Tools born?", searcher)
    assert len(searcher.queries) == 1


def test_second_search_that_fails_is_told_beside_what_the_first_has_found() -> None:
    question = "Where was the founder of Acme Tools born?"
    retrieval = _search(question, WordSearcher(fails_at=2))
    assert [(each.part, each.reason) for each in retrieval.degraded] == [(PART, "SEARCH_UNAVAILABLE")]
    assert retrieval.evidence == _search(question, WordSearcher(fails_at=2)).evidence
    with pytest.raises(Unavailable):
        _search(question, WordSearcher(fails_at=1))


def test_long_text_is_no_question_of_two_steps() -> None:
    assert read_two_steps("Where was the founder of Acme born? " + "the founder of Acme " * 90) is None


def test_answer_is_not_taken_from_the_name_s_own_sentence_twice() -> None:
    steps = read_two_steps("Where did the inventor of the steam pump live?")
    assert steps is not None
    only = Evidence(
        1, "c1", "d1", "a.txt", "The pump was invented by Karl Odin. Karl Odin lived in Graz.", dense_score=0.7
    )
    passages = [passage_of(only), passage_of(replace(only, number=2, chunk_id="c2", text="It rains in Graz."))]
    assert find_bridge(steps, passages) is None
