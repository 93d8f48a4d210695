"""Is what an artefact says proved by what it cites?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cli.client.gateway import Json
from evals.artefacts.words import has_number, sentences, share_in, stands_in

_AROUND = 0.5
"""Share of a question's words that a sentence with a wrong option has, if that option may be right after all."""
_LEAST_WORDS = 0.6


@dataclass(frozen=True)
class Checked:
    """One part of an artefact."""

    what: str
    problem: str = ""
    """Empty where it is right."""


def checked_questions(artefact: Json, text: str) -> Iterator[Checked]:
    """Each question: its right option stands in the cited words, and no other option fits a sentence of the whole document."""
    quotes = quotes_of(artefact)
    for at, question in enumerate(artefact["body"]["questions"]):
        asked, answer = question["question"], question["answer"]
        quote = quotes.get(f"/questions/{at}", "")
        wrong = [option for option in question["options"] if option != answer]
        problem = ""
        if not stands_in(asked.replace("____", answer), quote) and not _is_cell(asked, answer, quote):
            problem = "the right option is not in the cited words"
        elif question["options"].count(answer) != 1:
            problem = "the right option is not there once"
        elif fitting := [option for option in wrong if _may_fit(asked, option, text)]:
            problem = f"{fitting[0]} may be right, too"
        yield Checked(f"{asked} | {answer} | {', '.join(wrong)}", problem)


def _is_cell(asked: str, answer: str, quote: str) -> bool:
    """Whether a row has the name and the column of the question, with the answer behind the column."""
    head, _, column = asked.partition("; ")
    return stands_in(head, quote) and stands_in(f"{column.partition(':')[0]} {answer}", quote)


def _may_fit(asked: str, option: str, text: str) -> bool:
    """Whether a sentence has the option and half of the words of the question; of a row, the option in the same row and column."""
    around = asked.replace("____", " ")
    if asked.endswith("; ____") or ("; " in asked and asked.rstrip().endswith("____")):
        head, _, column = asked.partition("; ")
        return any(
            stands_in(head, line) and stands_in(f"{column.partition(':')[0]} {option}", line)
            for line in text.splitlines()
        )
    return any(stands_in(option, each) and share_in(around, each) >= _AROUND for each in sentences(text))


def checked_parts(artefact: Json) -> Iterator[Checked]:
    """Each datum, cell, event, node and line of a drawing: it stands in the words that it cites."""
    quotes, names = quotes_of(artefact), names_of(artefact)
    for path, said in _said(artefact["kind"], artefact["body"]):
        quote = f"{quotes.get(path, '')}\n{names.get(path, '')}"
        if path not in quotes:
            yield Checked(f"{path}: {said}", "it cites nothing")
        elif isinstance(said, float | int):
            yield Checked(
                f"{path}: {said}", "" if has_number(float(said), quote) else "the number is not in the cited words"
            )
        else:
            yield Checked(
                f"{path}: {said}", "" if share_in(said, quote) >= _LEAST_WORDS else "it is not in the cited words"
            )


def _said(kind: str, body: Json) -> Iterator[tuple[str, str | float]]:
    """What the parts of a drawing say, by their paths."""
    if kind == "chart":
        for row, series in enumerate(body["series"]):
            yield from (
                (f"/series/{row}/values/{at}", value) for at, value in enumerate(series["values"]) if value is not None
            )
    elif kind == "table":
        for at, row in enumerate(body["rows"]):
            yield from ((f"/rows/{at}/{column}", str(value)) for column, value in enumerate(row) if value is not None)
    elif kind == "timeline":
        yield from ((f"/events/{at}", f"{each['when']} {each['what']}") for at, each in enumerate(body["events"]))
    elif kind == "side_by_side":
        for at, row in enumerate(body["rows"]):
            yield from (
                (f"/rows/{at}/texts/{side}", text) for side, text in enumerate(row["texts"]) if text is not None
            )
    elif kind == "diagram":
        yield from ((f"/nodes/{at}", each["label"]) for at, each in enumerate(body["nodes"]))
    elif kind == "outline":
        yield from ((f"/lines/{at}", each["text"]) for at, each in enumerate(body["lines"]))


def quotes_of(artefact: Json) -> Mapping[str, str]:
    """The cited words by the path of what cites them."""
    words = {each["number"]: each["text"][each["quote_start"] : each["quote_end"]] for each in artefact["citations"]}
    return {item["path"]: "\n".join(words[number] for number in item["citations"]) for item in artefact["items"]}


def names_of(artefact: Json) -> Mapping[str, str]:
    """Names of the documents and headings above the cited words, which the nodes of a mind map are."""
    names = {each["number"]: " ".join([each["document_name"], *each["heading_path"]]) for each in artefact["citations"]}
    return {item["path"]: "\n".join(names[number] for number in item["citations"]) for item in artefact["items"]}
