"""What the users of these tests know: each has documents of their own that answer the same questions with other numbers, so that an
answer from somebody else's documents gives itself away."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.operation.traffic import FACT
from chaos.clients import unique_word
from kit.testing.openai import Reply
from tests.cluster.cluster import Json

HARBOURS = 6
REFUSAL = "The documents do not say."


@dataclass(frozen=True)
class Fact:
    """One document: a harbour and how many berths it has."""

    harbour: str
    berths: int
    document_id: str = ""

    @property
    def sentence(self) -> str:
        return f"The harbour of {self.harbour} has {self.berths} berths for visiting yachts."

    @property
    def text(self) -> str:
        return f"{self.sentence}\n\nIts harbour master can be reached by radio, and the pier is lit at night.\n"

    @property
    def question(self) -> str:
        return f"How many berths does the harbour of {self.harbour} have?"


@dataclass(frozen=True)
class User:
    """A subject with an API key, a collection that is nobody else's, and what is in it."""

    name: str
    key: str
    collection_id: str
    facts: tuple[Fact, ...]

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}


def facts_of(number: int) -> list[Fact]:
    """Of the user of this number: the harbours of all, with berths that no other user's harbour has."""
    return [Fact(unique_word(90, index), 100 + 37 * (HARBOURS * number + index)) for index in range(HARBOURS)]


@dataclass(frozen=True)
class Answer:
    """What a user was told, by whichever way."""

    text: str
    status: str
    support_status: str
    cited_documents: frozenset[str]
    is_degraded: bool

    @classmethod
    def of_json(cls, body: Json) -> "Answer":
        cited = frozenset(str(each["document_id"]) for each in body["citations"])
        return cls(body["answer"], body["status"], body["support_status"] or "", cited, bool(body["degraded"]))

    @property
    def says_that_it_could_not_search(self) -> bool:
        return self.support_status == "unavailable" or (self.is_degraded and self.status == "refused")


def mistake_in(answer: Answer, user: User, fact: Fact, others: Sequence[User]) -> str:
    """Why the user would be misled; "" when they would not. An answer that says that it could not search does not mislead."""
    foreign = [each.berths for other in others for each in other.facts if _says(answer.text, each.berths)]
    if foreign:
        return f"{user.name} was told somebody else's number {foreign}: {answer.text}"
    if answer.says_that_it_could_not_search:
        return ""
    if answer.status != "completed":
        return f"{user.name} was told {answer.status} ({answer.support_status}): {answer.text}"
    if not _says(answer.text, fact.berths):
        return f"{user.name} asked for {fact.harbour} and was not told {fact.berths}: {answer.text}"
    if fact.document_id not in answer.cited_documents:
        return f"the answer to {user.name} does not cite {fact.document_id} but {sorted(answer.cited_documents)}"
    strange = answer.cited_documents - {each.document_id for each in user.facts}
    return f"the answer to {user.name} cites {sorted(strange)} too" if strange else ""


def _says(text: str, number: int) -> bool:
    return re.search(rf"\b{number}\b", text) is not None


def reply_from_sources(request: Mapping[str, Any], pause_s: float) -> Reply:
    """What a model that reads well says: the sentence of the sources about the harbour that was asked for, word by word. To others
    what they want to hear."""
    prompt = str(request["messages"][-1]["content"])
    sources, _, question = prompt.rpartition("Question:")
    asked = re.search(r"harbour of (\w+)", question)
    if asked is None:
        return reply_to_traffic(request)
    return _quoted(sources, rf"The harbour of {asked[1]} has \d+ berths for visiting yachts\.", pause_s)


def reply_to_traffic(request: Mapping[str, Any]) -> Reply:
    """What it says to those of bench.operation.traffic, who ask for one fact and for one product."""
    prompt = str(request["messages"][-1]["content"])
    return Reply(["That is 84."]) if "12*7" in prompt else _quoted(prompt, re.escape(FACT.partition(".")[0] + "."), 0.0)


def _quoted(sources: str, sentence: str, pause_s: float) -> Reply:
    """What matches of the sources, word by word with its citation; else the refusal."""
    for number, text in re.findall(
        r"^\[(\d+)\] \([^\n]*\)\n(.*?)(?=^\[\d+\] \(|\Z)", sources, re.MULTILINE | re.DOTALL
    ):
        if said := re.search(sentence, text):
            words = f"{said[0][:-1]} [{number}].".split(" ")
            return Reply([f"{word} " for word in words[:-1]] + words[-1:], pause_s=pause_s)
    return Reply([REFUSAL])
