"""What clients were promised. A document is written under one name by one client, one request at a time; of a request that was not
answered nobody knows whether it was done, so that either end is right until the same request has been answered."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Promise:
    """Of one document name: the words that a search may find under it now. None stands for a document that is not there."""

    may_hold: set[str | None] = field(default_factory=lambda: {None})
    document_id: str = ""
    """As last answered."""
    words: set[str] = field(default_factory=set)
    """All that ever stood in it."""

    def begin(self, word: str | None) -> None:
        """A request was sent that leaves `word` in the document, or deletes it."""
        self.may_hold.add(word)
        if word:
            self.words.add(word)

    def answered(self, word: str | None, document_id: str = "") -> None:
        """It was acknowledged."""
        self.may_hold = {word}
        self.document_id = document_id


@dataclass
class Answer:
    """Of one run: the numbers and kinds of the events that its client saw."""

    run_id: str
    seen: list[tuple[int, str]] = field(default_factory=list)
    went_on_live: bool = False
    """It said that it could not be logged: it was for the clients that listened, and another may have finished the run
    otherwise."""

    def see(self, seq: int, kind: str, data: Mapping[str, object]) -> None:
        """An event came."""
        self.seen.append((seq, kind))
        self.went_on_live |= kind == "thinking" and data.get("phase") == "durability"


class Ledger:
    """Everything that clients did. Safe to use from their threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.promises: dict[str, Promise] = {}
        self.answers: list[Answer] = []
        self.named: Counter[str] = Counter()
        """What the system said is lost, by where, at its most: a loss that is made good is no longer told."""
        self.sent = self.acknowledged = self.questions = 0

    def promise(self, name: str) -> Promise:
        with self._lock:
            return self.promises.setdefault(name, Promise())

    def count(self, *, sent: int = 0, acknowledged: int = 0, questions: int = 0) -> None:
        with self._lock:
            self.sent += sent
            self.acknowledged += acknowledged
            self.questions += questions

    def note_damage(self, named: Mapping[str, int]) -> None:
        """What the system says now."""
        self.named |= Counter(named)

    def add(self, answer: Answer) -> None:
        with self._lock:
            self.answers.append(answer)
