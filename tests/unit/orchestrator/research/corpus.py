"""A small world of passages, searched by shared words, for runs that search in several rounds."""

from collections.abc import Mapping, Sequence

from kit.errors import Unavailable
from services.orchestrator.log.events import Evidence, Retrieval, StageRank
from services.orchestrator.models import SearchQuery
from services.orchestrator.research.question.names import stems_of

FILMS: Mapping[str, str] = {
    "The Iron Harbour": "The Iron Harbour is a 1931 drama film directed by Edda Lindqvist. It stars Paul Marsh.",
    "Edda Lindqvist": "Edda Lindqvist was a Swedish film director. She was born in Uppsala in 1899.",
    "Paul Marsh": "Paul Marsh was an actor from Leeds.",
    "Quiet Orchard": "Quiet Orchard is a 1948 comedy film directed by Tom Barrow.",
    "Tom Barrow": "Tom Barrow was a British director. He was born in York in 1907.",
    "Uppsala": "Uppsala is a city in Sweden.",
    "Harbours": "Harbours of iron were built in many towns.",
}


class Corpus:
    """Searcher over passages by title. `down` lists queries that are not answered."""

    def __init__(self, passages: Mapping[str, str] = FILMS, down: Sequence[str] = ()) -> None:
        self.passages = passages
        self.down = down
        self.queries: list[SearchQuery] = []

    async def search(self, query: SearchQuery) -> Retrieval:
        self.queries.append(query)
        text = query.queries[0]
        if text in self.down or "*" in self.down:
            raise Unavailable("the engines are down", reason="SEARCH_UNAVAILABLE")
        wanted = stems_of(text)
        scored = [(self._score(wanted, title), title) for title in self.passages]
        best = sorted((each for each in scored if each[0] > 0), key=lambda each: -each[0])[: query.top_k]
        evidence = tuple(self.evidence(title, number, score) for number, (score, title) in enumerate(best, 1))
        return Retrieval(evidence, strategy="hybrid")

    def _score(self, wanted: frozenset[str], title: str) -> float:
        """Share of the words that the passage has; a title of such words counts as half of one more."""
        stems = stems_of(title)
        shared = len(wanted & (stems | stems_of(self.passages[title]))) / max(1, len(wanted))
        return shared + 0.5 * (stems <= wanted) / max(1, len(wanted)) if shared else 0.0

    def evidence(self, title: str, number: int = 1, score: float = 1.0) -> Evidence:
        return Evidence(
            number,
            f"c-{title}",
            f"d-{title}",
            f"{title}.md",
            self.passages[title],
            heading_path=(title,),
            score=score,
            dense_score=score,
            ranks=(StageRank("lexical", number, score),),
        )
