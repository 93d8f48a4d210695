"""The work of the agent summary: it reads the documents whole, summarises section after section as recorded steps, and puts the
parts together. A run that is taken over goes on with the next section."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from kit.errors import GroundworkError
from kit.reading.carrying import Sentence, carrying_sentences
from services.orchestrator.answering.citations import cited_numbers
from services.orchestrator.answering.draft import EXTRACTIVE, MODEL
from services.orchestrator.answering.quotes import Quote, around_quote, citation
from services.orchestrator.log.events import Answer, Citation, Evidence, Thinking
from services.orchestrator.log.screen import Screen
from services.orchestrator.summaries.sections import DocumentSection, inner_sections, sections_of
from services.orchestrator.summaries.wishes import Length, SummaryWishes, read_wishes
from services.orchestrator.verification.quoting import verify_quotes
from services.orchestrator.work import Work

_MOST_SECTIONS = 80
"""Of all documents together: each is a step of the run."""
_KEPT_SHARE = 0.25
"""Of the run's time, for putting the parts together: a model reads no further section then."""
_SECTION_TOKENS = 220
_OVERVIEW_TOKENS = 500
_CITED_CHARS = 240_000
"""Text of all cited passages: an answer is one event of the log."""
_REFERENCES = re.compile(
    r"(?:^|› )\W*[\d.]*\s*(?:references|bibliography|works cited|citations|external links|see also|further reading"
    r"|literaturverzeichnis|einzelnachweise|weblinks|références|bibliographie|referencias|bibliografía)\W*$",
    re.IGNORECASE,
)
"""Titles of sections that say nothing of their own."""
_MARK = re.compile(r"\s?\[\d{1,9}\]")


@dataclass(frozen=True)
class SectionSummary:
    """The summary of one section. Its sentences end in the number of the passage that they come from."""

    title: str
    text: str
    by_model: bool
    evidence: Sequence[Evidence] = ()
    """The passages that it cites."""
    spans: Sequence[tuple[int, int, int]] = ()
    """Of quoted sentences: passage, first character and one past the last."""


async def summarise(work: Work) -> Answer | None:
    """The summary of what the message names. None where there is nothing to read."""
    wishes = read_wishes(work.message)
    sections = await _sections(work)
    if not sections:
        return None
    parts = await _parts(work, sections, wishes)
    if not any(part.evidence for part in parts):
        return None
    if all(not part.by_model for part in parts):
        return await _quoted(work, parts, wishes)
    return await _written(work, parts, wishes)


async def _sections(work: Work) -> Sequence[DocumentSection]:
    """All sections in reading order, with passages numbered over all documents."""
    documents = await work.documents()
    if not documents:
        return []
    most = max(1, _MOST_SECTIONS // len(documents))
    found: list[DocumentSection] = []
    read = 0
    for document in documents[:_MOST_SECTIONS]:
        chunks = [replace(each, number=read + each.number) for each in await work.read(document.document_id)]
        read += len(chunks)
        found += sections_of(chunks, most)
    found = [each for each in found if not _REFERENCES.search(each.title)] or found
    if len(documents) > _MOST_SECTIONS:
        await work.tell(
            f"Only the first {_MOST_SECTIONS} of {len(documents)} documents are summarised: name those you need."
        )
    return found


async def _parts(work: Work, sections: Sequence[DocumentSection], wishes: SummaryWishes) -> Sequence[SectionSummary]:
    count = max(1, min(wishes.length.of_a_section, wishes.length.at_most // len(sections)))
    began_s = work.run.journal.worked_s
    parts: list[SectionSummary] = []
    for number, section in enumerate(sections, start=1):
        worked_s = work.run.journal.worked_s - began_s
        left_s = worked_s / max(1, number - 1) * (len(sections) - number)
        summary = f"Read section {number} of {len(sections)}: {section.title[:120]}" + (
            f" (about {left_s:.0f} s left)" if left_s >= 1 else ""
        )
        parts.append(
            await work.run.once(
                f"section{number}",
                partial(_part, work, section, count, wishes),
                SectionSummary,
                show=partial(_shown, summary),
                of_steps=True,
            )
        )
    return parts


def _shown(summary: str, _: SectionSummary) -> Thinking:
    return Thinking("work", summary)


async def _part(work: Work, section: DocumentSection, count: int, wishes: SummaryWishes) -> SectionSummary:
    if _may_ask(work):
        try:
            return await _part_by_model(work, section, count, wishes)
        except GroundworkError as error:
            await work.degrade("llm", error, f"Quoting the section {section.title[:120]} instead.")
    found = await asyncio.to_thread(_carrying, section, count, wishes.focus)
    numbers = {each.source for each in found}
    return SectionSummary(
        section.title,
        "\n".join(f"{' '.join(each.text.split())} [{each.source}]" for each in found),
        False,
        [each for each in section.passages if each.number in numbers],
        [(each.source, each.start, each.end) for each in found],
    )


def _carrying(section: DocumentSection, count: int, focus: str) -> Sequence[Sentence]:
    """The sentences that carry the section; where short sections stand within its passages, one or two of each."""
    groups = inner_sections(section.passages)
    each_count = count if len(groups) == 1 else max(1, count // 2)
    found = []
    for slices in groups:
        for sentence in carrying_sentences(slices, each_count, focus):
            part = slices[sentence.source]
            start, end = sentence.start + part.start, sentence.end + part.start
            found.append(replace(sentence, source=part.passage.number, start=start, end=end))
    return found


def _may_ask(work: Work) -> bool:
    remaining_s, limit_s = work.run.budgets.remaining_s, work.run.budgets.budgets.wall_clock_s
    return work.has_model and (remaining_s is None or remaining_s > limit_s * _KEPT_SHARE)


async def _part_by_model(work: Work, section: DocumentSection, count: int, wishes: SummaryWishes) -> SectionSummary:
    focus = f" Look at {wishes.focus} above all." if wishes.focus else ""
    prompt = f"The part is called: {section.title}. Write {count} to {count + 1} sentences.{focus}"
    text = await work.write(section.passages, prompt=prompt, max_tokens=_SECTION_TOKENS)
    cited = set(cited_numbers(text))
    return SectionSummary(section.title, text, True, [each for each in section.passages if each.number in cited])


async def _quoted(work: Work, parts: Sequence[SectionSummary], wishes: SummaryWishes) -> Answer:
    """Sentences of the documents, each with a mark of its own."""
    evidence = {each.number: each for part in parts for each in part.evidence}
    if wishes.length is Length.SHORT:
        parts = await asyncio.to_thread(_shortest, parts, wishes)
    lines: list[str] = []
    sentences: list[str] = []
    citations: list[Citation] = []
    is_headed = len(parts) > 1 and wishes.length is not Length.SHORT
    for part in parts:
        said = []
        for sentence, (source, start, end) in zip(part.text.split("\n"), part.spans, strict=True):
            number = len(citations) + 1
            sentences.append(_MARK.sub("", sentence))
            citations.append(citation(evidence[source], Quote(source, start, end), number))
            said.append(f"{sentences[-1]} [{number}]")
        if said:
            lines.append(f"{part.title}\n{' '.join(said)}" if is_headed else " ".join(said))
    text = "\n\n".join(lines)
    await Screen(work.run.journal).settle(text)
    checked = verify_quotes(sentences, citations)
    return Answer(text, _fitting(citations), checked.support_status, EXTRACTIVE, verification=checked)


def _shortest(parts: Sequence[SectionSummary], wishes: SummaryWishes) -> Sequence[SectionSummary]:
    """The sentences that carry the sentences of all parts, as many as a short summary may have."""
    said = [(part, index) for part in parts for index in range(len(part.spans))]
    passages = [
        Evidence(number, "", "", "", _MARK.sub("", part.text.split("\n")[index]))
        for number, (part, index) in enumerate(said, start=1)
    ]
    chosen = {each.source for each in carrying_sentences(passages, wishes.length.at_most, wishes.focus)}
    kept = [each for number, each in enumerate(said, start=1) if number in chosen]
    return [replace(part, text=part.text.split("\n")[index], spans=[part.spans[index]]) for part, index in kept]


async def _written(work: Work, parts: Sequence[SectionSummary], wishes: SummaryWishes) -> Answer | None:
    """An overview from all parts, and below it the parts, unless the summary is to be short or is one part."""
    evidence = {each.number: each for part in parts for each in part.evidence}
    said = [part for part in parts if part.text]
    overview = await _overview(work, said, wishes) if len(said) > 1 else ""
    below = [] if overview and wishes.length is Length.SHORT else said
    lines = [overview] if overview else []
    lines += [f"{part.title}\n{part.text}" if len(said) > 1 else part.text for part in below]
    text = "\n\n".join(lines)
    cited = set(cited_numbers(text))
    return await work.answer(text, [each for number, each in evidence.items() if number in cited], method=MODEL)


async def _overview(work: Work, parts: Sequence[SectionSummary], wishes: SummaryWishes) -> str:
    """The reduce step: a few sentences over all parts; empty, said so, where the model fails."""
    if not work.has_model:
        return ""

    async def write() -> SectionSummary:
        # Each passage is shown as what its part says of it: the overview cites the passages themselves.
        sources = [
            Evidence(number, "", "", part.title, _MARK.sub("", part.text))
            for part in parts
            for number in cited_numbers(part.text)[:1]
        ]
        focus = f" Look at {wishes.focus} above all." if wishes.focus else ""
        prompt = f"The sources are the summaries of all parts, in order. Write an overview of 3 to 6 sentences.{focus}"
        return SectionSummary("", await work.write(sources, prompt=prompt, max_tokens=_OVERVIEW_TOKENS), True)

    try:
        summary = "Putting the sections together."
        return (
            await work.run.once("overview", write, SectionSummary, show=partial(_shown, summary), of_steps=True)
        ).text
    except GroundworkError as error:
        await work.degrade("llm", error, "The summary goes without an overview.")
        return ""


def _fitting(citations: Sequence[Citation]) -> tuple[Citation, ...]:
    """The citations with so much of their passages that all fit into one event: at least what is quoted."""
    room = _CITED_CHARS // max(1, len(citations))
    return tuple(around_quote(each, room) for each in citations)
