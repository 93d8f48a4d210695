"""What becomes of an answer once its claims are judged: which marks and sentences stay, and what is said of the whole."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from services.orchestrator.log.events import DecidingSpan, Evidence, SentenceVerdict, Verification
from services.orchestrator.verification.claims import Claim
from services.orchestrator.verification.judges import Judgement
from services.orchestrator.verification.rewriting import rewrite
from services.orchestrator.verification.verdicts import Verdict, Verify, least_certain, status_of

_NEAR_CHARS = 200
"""Between two passages of a document that belong together: one is context of the other."""
_QUOTE_CHARS = 500
_SCORES = {Verdict.SUPPORTED: 1.0, Verdict.SIMILAR_WORDING: 1.0, Verdict.PARTLY: 0.5}


@dataclass(frozen=True)
class CheckedAnswer:
    """An answer after its check; its marks and those of the verdicts are numbers of passages."""

    text: str
    verification: Verification | None
    """None where nothing is claimed."""
    evidence: Sequence[Evidence]
    """With the passages that were found for single claims."""
    spans: Mapping[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    """By passage and claim: the words that decide."""


@dataclass(frozen=True)
class JudgedPlace:
    """What is said of a claim, and where that stands."""

    judgement: Judgement
    source: Evidence | None
    """The passage that decides."""
    searched: bool = False
    """Whether the claim was searched for by itself."""

    @property
    def is_open(self) -> bool:
        """Whether the claim is one about documents that is not carried."""
        verdict = self.judgement.verdict
        return not (self.judgement.is_action or verdict is Verdict.NO_CLAIM or verdict.is_good)


def take_consequences(
    text: str,
    claims: Sequence[Claim],
    judged: Mapping[int, JudgedPlace],
    evidence: Sequence[Evidence],
    verify: Verify,
    mentions: Collection[int],
) -> CheckedAnswer:
    """The answer with the marks and the sentences that its claims have earned, without the sentences in `mentions`."""
    bad = {
        claim.sentence
        for position, claim in enumerate(claims)
        if judged[position].is_open or judged[position].judgement.verdict is Verdict.CONTRADICTED  # an action, too
    }
    removed = bad if verify is Verify.REMOVE else set()
    marks = {position: _marks(claim, judged[position], evidence) for position, claim in enumerate(claims)}
    rewritten = {claims[position].sentence for position, own in marks.items() if own != claims[position].numbers}
    changed = {position: own for position, own in marks.items() if claims[position].sentence in rewritten}
    verdicts = tuple(
        replace(verdict_of(claim, judged[position]), citations=marks[position], removed=claim.sentence in removed)
        for position, claim in enumerate(claims)
    )
    return CheckedAnswer(
        rewrite(text, claims, changed, removed.union(mentions)),
        _verification(verdicts, claims, verify, len(removed)),
        evidence,
        _spans(claims, judged),
    )


def _marks(claim: Claim, judged: JudgedPlace, evidence: Sequence[Evidence]) -> tuple[int, ...]:
    """What the claim may cite: nothing where it is not carried, and the passage that decides where it cites another."""
    verdict, source = judged.judgement.verdict, judged.source
    if verdict is Verdict.NO_CLAIM or (verdict is Verdict.PARTLY and claim.numbers):
        return claim.numbers
    if not verdict.is_good:
        return ()
    if source is None or any(are_near(source, each) for each in evidence if each.number in claim.numbers):
        return claim.numbers
    return (source.number,)


def _spans(claims: Sequence[Claim], judged: Mapping[int, JudgedPlace]) -> Mapping[tuple[int, str], tuple[int, int]]:
    return {
        (each.source.number, claims[position].text): (each.judgement.start, each.judgement.end)
        for position, each in judged.items()
        if each.source is not None and each.judgement.end > each.judgement.start
    }


def verdict_of(claim: Claim, judged: JudgedPlace) -> SentenceVerdict:
    """The verdict as it is said; its citations are those that the claim was written with."""
    judgement = judged.judgement
    score = _SCORES.get(judgement.verdict, 0.0) if judgement.probability is None else judgement.probability
    return SentenceVerdict(
        claim.text,
        judgement.verdict,
        claim.numbers,
        round(score, 3),
        is_action=judgement.is_action,
        span=_span(judged),
        probability=None if judgement.probability is None else round(judgement.probability, 3),
        checked_by=None if judgement.verdict is Verdict.NO_CLAIM else judgement.checked_by,
        searched=judged.searched,
    )


def are_near(source: Evidence, other: Evidence) -> bool:
    """Whether two passages are one, or stand beside each other."""
    if source.document_id != other.document_id:
        return False
    gap = max(source.char_start, other.char_start) - min(source.char_end, other.char_end)
    return source.chunk_id == other.chunk_id or (source.char_end > 0 and other.char_end > 0 and gap <= _NEAR_CHARS)


def _span(judged: JudgedPlace) -> DecidingSpan | None:
    source, judgement = judged.source, judged.judgement
    if source is None:
        return None
    text = source.text[judgement.start : judgement.end][:_QUOTE_CHARS]
    return DecidingSpan(source.document_id, source.document_name, source.chunk_id, judgement.start, judgement.end, text)


def _verification(
    verdicts: Sequence[SentenceVerdict], claims: Sequence[Claim], verify: Verify, removed: int
) -> Verification:
    """Of an answer: shares are of its claims about documents, as they were written."""
    about = [
        (verdict, claim)
        for verdict, claim in zip(verdicts, claims, strict=True)
        if verdict.verdict != Verdict.NO_CLAIM and not verdict.is_action
    ]
    good = [(verdict, claim) for verdict, claim in about if Verdict(verdict.verdict).is_good]
    cited = sum(len(claim.numbers) for _, claim in about)
    kept = sum(number in verdict.citations for verdict, claim in good for number in claim.numbers)
    by_their_own = sum(bool({*verdict.citations} & {*claim.numbers}) for verdict, claim in good)
    return Verification(
        tuple(verdicts),
        citation_precision=kept / cited if cited else 0.0,
        citation_coverage=len(good) / len(about) if about else 0.0,
        support_status=status_of(verdicts),
        checked_by=least_certain(verdicts),
        verify=verify,
        removed=removed,
        citation_recall=by_their_own / len(about) if about else 0.0,
    )
