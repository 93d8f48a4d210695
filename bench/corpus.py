"""Text to measure with: generated, so that nothing is downloaded and everybody measures the same; seeded; natural enough that
sentences, paragraphs, headings, word lengths and repeated words are those of reports and handbooks. Facts are planted in it, so
that questions have answers."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

_WORDS: dict[str, tuple[str, ...]] = {
    "thing": (
        *(
            "pump",
            "archive",
            "bridge",
            "greenhouse",
            "reactor",
            "library",
            "turbine",
            "harbour crane",
            "laboratory",
            "depot",
        ),
        *(
            "reservoir",
            "telescope",
            "server room",
            "workshop",
            "kiln",
            "signal box",
            "vineyard",
            "printing press",
            "ferry",
        ),
        *(
            "weather station",
            "cold store",
            "assembly line",
            "observatory",
            "canal lock",
            "wind farm",
            "clinic",
            "foundry",
        ),
    ),
    "role": (
        *(
            "the maintenance crew",
            "the board",
            "an external auditor",
            "the night shift",
            "the planning office",
            "the council",
        ),
        *(
            "the engineers",
            "a visiting committee",
            "the procurement team",
            "two apprentices",
            "the safety officer",
            "volunteers",
        ),
    ),
    "adjective": (
        *(
            "reliable",
            "temporary",
            "unexpected",
            "careful",
            "regional",
            "modest",
            "considerable",
            "seasonal",
            "independent",
        ),
        *(
            "detailed",
            "outdated",
            "practical",
            "narrow",
            "robust",
            "expensive",
            "preliminary",
            "annual",
            "remote",
            "shared",
        ),
    ),
    "noun": (
        *(
            "report",
            "budget",
            "schedule",
            "inspection",
            "contract",
            "measurement",
            "delivery",
            "agreement",
            "shortage",
            "policy",
        ),
        *(
            "repair",
            "training",
            "procedure",
            "storage",
            "supplier",
            "complaint",
            "forecast",
            "insulation",
            "ventilation",
        ),
        *(
            "corrosion",
            "humidity",
            "electricity",
            "timetable",
            "warranty",
            "calibration",
            "documentation",
            "subsidy",
            "audit",
        ),
        *(
            "drainage",
            "throughput",
            "pressure",
            "workload",
            "evaluation",
            "replacement",
            "quality",
            "risk",
            "certificate",
        ),
    ),
    "verb": (
        *(
            "reviewed",
            "postponed",
            "approved",
            "described",
            "improved",
            "rejected",
            "measured",
            "reorganised",
            "questioned",
        ),
        *(
            "confirmed",
            "financed",
            "recorded",
            "reduced",
            "extended",
            "simplified",
            "inspected",
            "negotiated",
            "completed",
        ),
    ),
    "reason": (
        *(
            "because spare parts were late",
            "after several weeks of rain",
            "although funds were short",
            "as the contract required",
        ),
        *(
            "in spite of earlier warnings",
            "so that the public could take part",
            "since demand had doubled within a year",
        ),
        *("which surprised nobody who had read the minutes", "while traffic continued on the remaining lane"),
    ),
    "time": (
        *(
            "in spring",
            "during the second quarter",
            "over the winter",
            "within six weeks",
            "at the end of the year",
            "by Friday",
        ),
        *("after the holidays", "before the annual meeting", "in the following months", "shortly before midnight"),
    ),
    "month": ("January", "March", "April", "June", "August", "September", "November"),
}
_SENTENCES = (
    "The {noun} of the {thing} was {verb} {time}, {reason}.",
    "{Role} {verb} the {adjective} {noun} and asked for a {adjective} {noun} {time}.",
    "A {adjective} {noun} remains the main concern, {reason}.",
    "Nobody had {verb} the {noun} before, so {role} started with a {adjective} {noun}.",
    "In practice the {noun} depends on the {noun}, and both are {adjective} when the {thing} is running at full load.",
    "For the {thing}, {role} keep a {adjective} {noun} that lists every {noun} and every {noun} since the last {noun}.",
    "Compared with the year before, the {noun} rose by {percent} percent, whereas the {noun} fell slightly.",
    "{Role} {verb} {count} items {time}; most of them concerned the {noun} or the {noun}.",
    "If the {noun} exceeds {count} units, the {thing} has to be stopped until {role} have {verb} the {noun}.",
    "The text of the {noun} is short: it names a {noun}, a {noun} and a {adjective} {noun}, and little else.",
    "It is still open whether the {adjective} {noun} will be {verb} {time}.",
    "Costs of about {money} euros were split between the {noun} and the {noun}, {reason}.",
    "This {noun} is {adjective}.",
    "Visitors often ask about the {noun}; {role} usually point to the {adjective} {noun} from {year}.",
)
_FACTS = (
    (
        "The {thing} of {place} was commissioned in {year} under the direction of {person}.",
        "When was the {thing} of {place} commissioned?",
        "{year}",
    ),
    (
        "{person} has been responsible for the {thing} of {place} since the last reorganisation.",
        "Who is responsible for the {thing} of {place}?",
        "{person}",
    ),
    (
        "Repairing the {thing} of {place} cost {money} euros in total.",
        "How much did repairing the {thing} of {place} cost?",
        "{money}",
    ),
    (
        "The {thing} of {place} may carry a load of at most {count} tonnes.",
        "What load may the {thing} of {place} carry at most?",
        "{count}",
    ),
)
_HEADINGS = (
    "Background",
    "Operation",
    "Maintenance",
    "Finances",
    "Incidents",
    "Staff",
    "Outlook",
    "Procedures",
    "Measurements",
)
_SYLLABLES = (
    "var",
    "nol",
    "est",
    "mar",
    "ghen",
    "lu",
    "tor",
    "bri",
    "sel",
    "ka",
    "win",
    "dor",
    "fal",
    "ri",
    "hem",
    "ost",
)
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Fact:
    """A question, and what an answer to it must contain."""

    question: str
    expected: str


@dataclass(frozen=True)
class SampleDocument:
    """A file to upload."""

    name: str
    text: str
    facts: Sequence[Fact]


def make_documents(seed: int, count: int, words: int) -> list[SampleDocument]:
    """`count` documents of mixed size (log-normal: many short, a few long) with about `words` words together; every second one is
    Markdown with headings, the others are plain text."""
    rng = random.Random(seed)
    shares = [rng.lognormvariate(0.0, 0.9) for _ in range(count)]
    return [
        _Author(rng).document(number, max(60, round(words * share / sum(shares))))
        for number, share in enumerate(shares, 1)
    ]


def make_paragraphs(seed: int, count: int, words: int) -> list[str]:
    """`count` texts of about `words` words each."""
    author = _Author(random.Random(seed))
    return [author.prose(words) for _ in range(count)]


def make_queries(seed: int, count: int) -> list[str]:
    """Questions in the words of the corpus, all different."""
    author = _Author(random.Random(seed))
    return list({author.fact()[1].question: None for _ in range(2 * count)})[:count]


class _Author:
    """Writes from one stream of random numbers."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def document(self, number: int, words: int) -> SampleDocument:
        place = self._name()
        markdown = number % 2 == 0
        blocks = [f"# Report on {place}" if markdown else f"Report on {place}"]
        facts: list[Fact] = []
        things = self._rng.sample(_WORDS["thing"], len(_WORDS["thing"]))
        written = 0
        while written < words:
            if markdown and len(blocks) % 4 == 1:
                blocks.append(f"## {self._rng.choice(_HEADINGS)}")
            paragraph = self.prose(min(words - written, self._rng.randint(45, 140)))
            if len(facts) < len(things) and len(blocks) % 3 == 1:
                sentence, fact = self.fact(place, things[len(facts)])
                paragraph = f"{paragraph} {sentence}"
                facts.append(fact)
            blocks.append(paragraph)
            written += paragraph.count(" ") + 1
        name = f"{number:03d}-{place.lower()}.{'md' if markdown else 'txt'}"
        return SampleDocument(name, "\n\n".join(blocks) + "\n", facts)

    def prose(self, words: int) -> str:
        sentences: list[str] = []
        written = 0
        while written < words:
            sentence = self._fill(self._rng.choice(_SENTENCES), {})
            sentences.append(sentence)
            written += sentence.count(" ") + 1
        return " ".join(sentences)

    def fact(self, place: str = "", thing: str = "") -> tuple[str, Fact]:
        sentence, question, expected = self._rng.choice(_FACTS)
        known = {
            "place": place or self._name(),
            "thing": thing or self._word("thing"),
            "person": f"{self._name()} {self._name()}",
            **{slot: self._word(slot) for slot in ("year", "money", "count")},
        }
        return self._fill(sentence, known), Fact(self._fill(question, known), self._fill(expected, known))

    def _name(self) -> str:
        return "".join(self._rng.sample(_SYLLABLES, self._rng.choice((2, 3)))).capitalize()

    def _fill(self, template: str, known: dict[str, str]) -> str:
        return _SLOT.sub(lambda slot: known.get(slot[1]) or self._word(slot[1]), template)

    def _word(self, slot: str) -> str:
        match slot:
            case "year":
                return str(self._rng.randint(1950, 2024))
            case "percent":
                return str(self._rng.randint(2, 40))
            case "count":
                return str(self._rng.randint(11, 980))
            case "money":
                return f"{self._rng.randint(3, 900)},{self._rng.randrange(0, 1000, 50):03d}"
            case "Role":
                word = self._rng.choice(_WORDS["role"])
                return word[0].upper() + word[1:]
        return self._rng.choice(_WORDS[slot])
