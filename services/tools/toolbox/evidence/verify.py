"""Looks a claim up in the documents and has the model server judge whether they carry it; the words in common decide without it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kit.grounding import SUPPORT_THRESHOLD, Judge
from kit.language.sentences import UnitKind, split_units
from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.rendering import citable, degradations, described, fitted, quoted, sentences
from services.tools.passages.retrieval import Degradation, SearchQuery, Strategy
from services.tools.passages.scope import search_readable
from services.tools.ports import ClaimVerdict, JudgedClaims

_PASSAGES_JUDGED = 8
_EVIDENCE_MAX = 3
"""Passages that are shown for a verdict."""
_LIKELY = 0.5
"""Probability from which on a claim counts as carried."""
_SHORT_CLAIM_WORDS = 3
"""A claim of so few words means little without its question."""
_CLAIMS_MAX = 8
"""Sentences of one claim that are judged. A page is verified in pieces."""

SCHEMA = {
    "type": "function",
    "function": {
        "name": "verify",
        "description": (
            "Checks a claim against the user's documents: searches for it and tells whether passages support it, contradict it, or "
            "say nothing about it, with the passages."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "claim": {
                    "type": "string",
                    "description": "A statement in full sentences, with its names and numbers.",
                    "minLength": 1,
                    "maxLength": 2000,
                },
                "question": {
                    "type": "string",
                    "description": "The question that the claim answers, where the claim means little without it.",
                    "minLength": 1,
                    "maxLength": 2000,
                },
                "collection_ids": {
                    "type": "array",
                    "description": "Collections to look in. Default: all that there are.",
                    "items": {"type": "string", "minLength": 1, "maxLength": 64},
                    "maxItems": 256,
                },
                "document_ids": {
                    "type": "array",
                    "description": "Documents to look in. Default: all.",
                    "items": {"type": "string", "minLength": 1, "maxLength": 128},
                    "maxItems": 50,
                },
            },
            "required": ["claim"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=5.0,
    called_for_by=(
        r"\b(?:verify|fact.?check|double.?check)\b|\bis it (?:true|correct)|\bcheck (?:whether|if|that|this|the claim)\b",
        r"stimmt (?:es|das)|überprüf|\bprüfe?\b|ist es wahr",
        r"vérifi|est-ce vrai|est-il vrai",
        r"verific|es verdad|es cierto|è vero|é verdade",
        r"\bklopt\b|controleer|sprawdź|czy to prawda",
        r"\bпровер|правда ли|\bперевір|чи правда",
        r"doğrula|doğru mu",
        r"核实|是真的|本当(?:です)?か|確認して|사실(?:인가|이야)|확인해|تحقق",
    ),
)


class NotAClaim(ToolError):
    """There is nothing in it that could be true or not."""

    reason = "NOT_A_CLAIM"


class Verdict(StrEnum):
    """What the passages say to a claim, from good to bad."""

    SUPPORTED = "supported"
    SIMILAR = "similar_wording"
    """One has similar words: what a judge says whose error is not small enough to say more."""
    UNSUPPORTED = "not_found"
    """None carries it."""
    CONTRADICTED = "contradicted_or_unclear"
    """One says the opposite, or the same of another number or name, or they disagree."""


_WORST_FIRST = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.SIMILAR, Verdict.SUPPORTED)
_WORDS = JudgedClaims("words", measured=False, verdicts=())
"""The judge when the model server does not answer."""
_IN_WORDS = {
    Verdict.SUPPORTED: "The documents support",
    Verdict.SIMILAR: "The documents have words like",
    Verdict.UNSUPPORTED: "The documents do not support",
    Verdict.CONTRADICTED: "The documents contradict, or leave unclear,",
}


@dataclass(frozen=True)
class _Source:
    """A passage as the judge reads it."""

    number: int
    document_name: str
    heading_path: Sequence[str]
    text: str


@dataclass(frozen=True)
class _Judged:
    """A sentence of the claim. `confidence`: how much of it the best passage carries, 0 to 1."""

    sentence: str
    verdict: Verdict
    confidence: float
    supporting: Sequence[int]
    disagreeing: Sequence[int]


@dataclass(frozen=True)
class _Decisive:
    """A passage, what it does to the claim, and the sentence of it that does so."""

    passage: Passage
    says: str
    quote: str


async def verify(
    context: ToolContext,
    claim: str,
    question: str = "",
    collection_ids: Sequence[str] = (),
    document_ids: Sequence[str] = (),
) -> ToolOutput:
    """`verdict`, `confidence` (0 to 1 that the documents carry the claim) and `evidence`: passages, each with the sentence that
    speaks for or against it. A claim of several sentences is as good as its worst."""
    claims = _claims(claim)
    query = SearchQuery(
        [claim, question] if question else [claim], collection_ids, _PASSAGES_JUDGED, Strategy.AUTO, document_ids
    )
    found = await search_readable(context, query)
    said, away = await _asked(context, claims, question, found.passages)
    judged, evidence = await asyncio.to_thread(_judged, claims, question, found.passages, said)
    degraded = (*found.degraded, *away)
    verdict = min((each.verdict for each in judged), key=_WORST_FIRST.index)
    shown = fitted([each.passage for each in evidence], context.settings.tools_text_tokens)
    content = {
        "verdict": verdict.value,
        "confidence": round(min(each.confidence for each in judged), 3),
        "evidence": [_with_quote(described(passage), each) for passage, each in zip(shown, evidence, strict=True)],
        "checked_by": {"name": said.judge, "measured": said.measured},
        "passages_judged": len(found.passages),
        **_by_sentence(judged),
        **degradations(degraded),
    }
    summary = f"{_IN_WORDS[verdict]} {quoted(claim)}."
    return ToolOutput(content, sentences(summary, degraded=degraded), citable(shown))


async def _asked(
    context: ToolContext, claims: Sequence[str], question: str, passages: Sequence[Passage]
) -> tuple[JudgedClaims, Sequence[Degradation]]:
    """What the model server says of each claim. Where it does not answer the words decide, and the result says so."""
    if not passages:
        return _WORDS, ()
    asked = [f"{question} {claim}".strip() if len(claim.split()) <= _SHORT_CLAIM_WORDS else claim for claim in claims]
    read = [(" › ".join([each.document_name, *each.heading_path]), each.text) for each in passages]
    try:
        return await context.services.models.judge(asked, read), ()
    except ToolError as error:
        return _WORDS, [Degradation("verify", error.reason, "Claim and passages were compared by their words.")]


def _with_quote(passage: dict[str, Any], decisive: _Decisive) -> dict[str, Any]:
    return {**passage, "source": {**passage["source"], "quote": decisive.quote}, "says": decisive.says}


def _by_sentence(judged: Sequence[_Judged]) -> dict[str, Any]:
    """The part of a content about a claim of several sentences."""
    if len(judged) == 1:
        return {}
    verdicts = {
        each.sentence: {"verdict": each.verdict.value, "confidence": round(each.confidence, 3)} for each in judged
    }
    return {"sentences": verdicts}


def _claims(claim: str) -> list[str]:
    """Its sentences that can be true or not. Raises NotAClaim when none can."""
    judge = Judge(())
    units = [unit.text for unit in split_units(claim) if unit.kind is not UnitKind.LIST]
    claims = [text for text in units if judge.is_claim(text)]
    if not claims:
        raise NotAClaim("there is nothing to verify in this; state what is claimed in a full sentence")
    if len(claims) > _CLAIMS_MAX:
        raise NotAClaim(f"these are {len(claims)} claims; verify at most {_CLAIMS_MAX} at once, best one by one")
    return claims


def _judged(
    claims: Sequence[str], question: str, passages: Sequence[Passage], said: JudgedClaims
) -> tuple[Sequence[_Judged], Sequence[_Decisive]]:
    """Each claim, and the passages that decide. The words find what denies a claim, the judge what carries it."""
    sources = [
        _Source(number, passage.document_name, passage.heading_path, passage.text)
        for number, passage in enumerate(passages)
    ]
    judge = Judge(sources, question)
    verdicts: Sequence[ClaimVerdict | None] = said.verdicts or [None] * len(claims)
    judged = [
        _of_sentence(judge, sentence, len(passages), verdict, Verdict.SUPPORTED if said.measured else Verdict.SIMILAR)
        for sentence, verdict in zip(claims, verdicts, strict=True)
    ]
    return judged, _evidence(judge, judged, passages, "supports" if said.measured else "is similar")


def _of_sentence(
    judge: Judge, sentence: str, passage_count: int, said: ClaimVerdict | None, carried: Verdict
) -> _Judged:
    numbers = range(passage_count)
    denying = [number for number in numbers if judge.denies(sentence, (number,))]
    scores = {number: judge.score(sentence, (number,)) for number in numbers if number not in denying}
    supporting = sorted(
        (number for number, score in scores.items() if score >= SUPPORT_THRESHOLD), key=lambda number: -scores[number]
    )
    best = max(scores.values(), default=0.0)
    if said is not None:
        best = said.probability
        supporting = [said.passage] if best >= _LIKELY and said.passage not in denying else []
    if supporting and denying:
        return _Judged(sentence, Verdict.CONTRADICTED, best / 2, supporting, denying)
    if supporting:
        # Others may tell of another number: of another year, or another place.
        return _Judged(sentence, carried, best, supporting, ())
    disagreeing = [number for number in numbers if judge.disagrees(sentence, number)]
    verdict = Verdict.CONTRADICTED if disagreeing else Verdict.UNSUPPORTED
    return _Judged(sentence, verdict, best / 2 if disagreeing else best, (), disagreeing)


def _evidence(
    judge: Judge, judged: Sequence[_Judged], passages: Sequence[Passage], carries: str
) -> Sequence[_Decisive]:
    """`carries`: what a passage is said to do that speaks for a claim."""
    decisive: dict[int, _Decisive] = {}
    for says in (carries, "disagrees"):
        for each in judged:
            for number in (each.supporting if says == carries else each.disagreeing)[:_EVIDENCE_MAX]:
                quote, _ = judge.closest(each.sentence, number)
                decisive.setdefault(number, _Decisive(passages[number], says, quote))
    return list(decisive.values())[:_EVIDENCE_MAX]
