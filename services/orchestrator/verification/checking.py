"""Checks an answer claim by claim: while it is written where the judge is quick, and as a whole once it is finished. A claim that
its citations do not carry is looked for once more, in the rest of the evidence and by a search of its own."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace

from kit import deadline
from kit.errors import GroundworkError
from kit.grounding import Judge
from kit.observability.telemetry import span
from services.orchestrator.log.events import (
    ClaimChecked,
    DecidingSpan,
    Degradation,
    Evidence,
    SentenceVerdict,
    Thinking,
    Verification,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.verification.actions import Effect, claimed_action, happened
from services.orchestrator.verification.claims import Claim, split_claims
from services.orchestrator.verification.judges import ClaimJudge, JudgedClaim, JudgedPassage, Judgement, WordJudge
from services.orchestrator.verification.rewriting import rewrite
from services.orchestrator.verification.verdicts import EFFECTS, Verdict, Verify, least_certain, status_of

Find = Callable[[str], Awaitable[Sequence[Evidence]]]
"""The best passages for a claim, noted as text that the run holds. Raises GroundworkError."""

_MOST_SEARCHES = 3
"""Claims of one answer that are searched for by themselves."""
_FOUND_PASSAGES = 3
"""Passages of such a search that the claim is judged against."""
_LEAST_SEARCH_S = 3.0
"""Of the run's time: with less nothing is searched for any more."""
_NEAR_CHARS = 200
"""Between two passages of a document that belong together: one is context of the other."""
_QUOTE_CHARS = 500
_SCORES = {Verdict.SUPPORTED: 1.0, Verdict.SIMILAR_WORDING: 1.0, Verdict.PARTLY: 0.5}
_NOTHING = Judgement(Verdict.NO_CLAIM, EFFECTS)


@dataclass(frozen=True)
class AnswerCheck:
    """How the answers of a run are checked."""

    judges: Sequence[ClaimJudge] = (WordJudge(),)
    """The first that can judges; the others stand in for it."""
    verify: Verify = Verify.MARK
    find: Find | None = None
    """None: claims are not searched for."""
    effects: Callable[[], Sequence[Effect]] = tuple
    """What the run has done so far."""
    require_model: Callable[[], None] = lambda: None
    """Raises BudgetSpent when no model may be asked any more."""


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
class _Judged:
    judgement: Judgement
    source: Evidence | None
    """The passage that decides."""
    searched: bool = False


class Checking:
    """The check of one answer. What was judged once is not judged again while its text and its citations stay the same."""

    def __init__(self, check: AnswerCheck, question: str, evidence: Sequence[Evidence], journal: Journal) -> None:
        self._check = check
        self._question = question
        self._journal = journal
        self.evidence = list(evidence)
        self._words = Judge(evidence, question)
        self._known: dict[tuple[str, tuple[int, ...]], _Judged] = {}
        self._said: dict[int, SentenceVerdict] = {}
        self._away: set[str] = set()
        self._latest = ""
        self._news = asyncio.Event()
        self._is_written = False

    def hear(self, text: str) -> None:
        """The answer reads `text` so far."""
        self._latest = text
        self._news.set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Within it finished sentences of what is heard are judged at once, where that is quick."""
        if self._check.verify is Verify.OFF or not self._check.judges[0].is_quick or not self.evidence:
            yield
            return
        listener = asyncio.create_task(self._listen())
        try:
            yield
            self._is_written = True
            self._news.set()
            await listener
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            if self._is_written:
                return
            claims = split_claims(self._latest)
            last = claims[-1].sentence if claims else 0
            await self._judge_all([claim for claim in claims if claim.sentence < last])  # it may not have all its marks

    async def check(self, text: str) -> CheckedAnswer:
        """The answer, checked; see AnswerCheck for what becomes of it."""
        with span("verify") as traced:
            checked = await self._checked(text)
            if checked.verification is not None and checked.verification.support_status is not None:
                traced.set_attribute("groundwork.verification.claims", len(checked.verification.sentences))
                traced.set_attribute("groundwork.verification.support", checked.verification.support_status.value)
        return checked

    async def _checked(self, text: str) -> CheckedAnswer:
        if self._check.verify is Verify.OFF:
            return CheckedAnswer(text, Verification((), 0.0, 0.0, None, verify=Verify.OFF), self.evidence)
        claims = split_claims(text)
        judged = await self._judge_all(claims)
        judged |= await self._look_again(claims, judged)
        if all(each.judgement.verdict is Verdict.NO_CLAIM for each in judged.values()):
            mentions = {claim.sentence for claim in claims if self._words.is_mention(claim.text)}
            return CheckedAnswer(rewrite(text, claims, {}, mentions), None, self.evidence)
        return self._consequences(text, claims, judged)

    async def _judge_all(self, claims: Sequence[Claim]) -> dict[int, _Judged]:
        """By position, each said as soon as it is known."""
        judged = {position: known for position, claim in enumerate(claims) if (known := self._settled(claim))}
        for position, each in judged.items():
            await self._say(position, claims[position], each)
        rest = [position for position in range(len(claims)) if position not in judged]
        asked = {position: self._judged_claim(claims[position]) for position in rest}
        async for position, each in self._ask({key: claim for key, claim in asked.items() if claim.passages}):
            claim = claims[position]
            action = (
                None if each.judgement.verdict.is_good else claimed_action(claim.text, is_cited=bool(claim.numbers))
            )
            settled = each if action is None else self._compared_with_effects(action.kind)
            judged[position] = self._known[_key(claim)] = settled
            await self._say(position, claim, settled)
        return {position: judged.get(position, _Judged(_NOTHING, None)) for position in range(len(claims))}

    def _settled(self, claim: Claim) -> _Judged | None:
        """What needs no judge, or was judged before."""
        if (known := self._known.get(_key(claim))) is not None:
            return known
        action = claimed_action(claim.text, is_cited=bool(claim.numbers))
        if action is not None:
            by_effects = self._compared_with_effects(action.kind)
            if action.is_certain or not self.evidence or by_effects.judgement.verdict is Verdict.SUPPORTED:
                return by_effects
        is_claim = self._words.is_claim(claim.text)
        return None if is_claim and not claim.is_frame else _Judged(_NOTHING, None)

    def _compared_with_effects(self, kind: str) -> _Judged:
        verdict = happened(kind, self._check.effects())
        return _Judged(Judgement(verdict, EFFECTS, is_action=True), None)

    def _judged_claim(self, claim: Claim) -> JudgedClaim:
        """Against what it cites and what belongs to that; one that cites nothing against all there is."""
        cited = [number for number, each in enumerate(self.evidence) if each.number in claim.numbers]
        near = [
            number
            for number, each in enumerate(self.evidence)
            if number not in cited and any(_is_near(each, self.evidence[other]) for other in cited)
        ]
        return JudgedClaim(claim.text, [*cited, *near] or list(range(len(self.evidence))), claim.whole)

    async def _ask(
        self, claims: Mapping[int, JudgedClaim], *, searched: bool = False
    ) -> AsyncGenerator[tuple[int, _Judged], None]:
        """What the first judge that answers says; the others say what it leaves out."""
        passages = [JudgedPassage(each.text, each.document_name, each.heading_path) for each in self.evidence]
        left = dict(claims)
        for judge in self._check.judges:
            if not left:
                return
            positions = list(left)
            try:
                if judge.asks_model:
                    self._check.require_model()
                async with aclosing(judge.judge(self._question, list(left.values()), passages)) as judgements:
                    async for number, judgement in judgements:
                        position = positions[number]
                        if left.pop(position, None) is not None:
                            yield position, self._placed(judgement, searched=searched)
            except GroundworkError as error:
                await self._say_away(error)

    def _placed(self, judgement: Judgement, *, searched: bool) -> _Judged:
        if judgement.is_action:
            return replace(self._compared_with_effects(""), searched=searched)
        source = None if judgement.passage is None else self.evidence[judgement.passage]
        return _Judged(judgement, source, searched)

    async def _say_away(self, error: GroundworkError) -> None:
        if error.reason not in self._away:
            self._away.add(error.reason)
            note = Degradation("verify", error.reason, error.message)
            await self._journal.write(Thinking("verify", "Checking by another judge.", note))

    async def _look_again(self, claims: Sequence[Claim], judged: Mapping[int, _Judged]) -> dict[int, _Judged]:
        """The claims that are carried by other passages than those that they cite."""
        open_claims = [position for position, each in judged.items() if _is_open(each)]
        if not open_claims:
            return {}
        searched = await self._search([claims[position] for position in open_claims])
        asked = {}
        for position in open_claims:
            tried = self._judged_claim(claims[position]).passages
            others = [number for number in range(len(self.evidence)) if number not in tried]
            if others:
                asked[position] = JudgedClaim(claims[position].text, others, claims[position].whole)
        said = {position: each async for position, each in self._ask(asked)}
        better = {position: each for position, each in said.items() if each.judgement.verdict.is_good}
        for position in open_claims[:searched]:
            better[position] = replace(better.get(position, judged[position]), searched=True)
        for position, each in better.items():
            await self._say(position, claims[position], each)
        return better

    async def _search(self, claims: Sequence[Claim]) -> int:
        """Adds what is found for the first of them to the evidence; returns for how many was searched."""
        left_s = deadline.remaining_s()
        if self._check.find is None or (left_s is not None and left_s < _LEAST_SEARCH_S):
            return 0
        wanted = claims[:_MOST_SEARCHES]
        found = await asyncio.gather(*(self._check.find(claim.text) for claim in wanted), return_exceptions=True)
        known = {each.chunk_id for each in self.evidence}
        for each in found:
            if isinstance(each, GroundworkError):
                await self._say_away(each)
            elif isinstance(each, BaseException):
                raise each
            else:
                for hit in [hit for hit in each[:_FOUND_PASSAGES] if hit.chunk_id not in known]:
                    known.add(hit.chunk_id)
                    self.evidence.append(replace(hit, number=1 + max((e.number for e in self.evidence), default=0)))
        return len(wanted)

    def _consequences(self, text: str, claims: Sequence[Claim], judged: Mapping[int, _Judged]) -> CheckedAnswer:
        bad = {
            claim.sentence
            for position, claim in enumerate(claims)
            if _is_open(judged[position])
            or judged[position].judgement.verdict is Verdict.CONTRADICTED  # an action, too
        }
        removed = bad if self._check.verify is Verify.REMOVE else set()
        marks = {position: self._marks(claim, judged[position]) for position, claim in enumerate(claims)}
        rewritten = {claims[position].sentence for position, own in marks.items() if own != claims[position].numbers}
        changed = {position: own for position, own in marks.items() if claims[position].sentence in rewritten}
        mentions = {claim.sentence for claim in claims if self._words.is_mention(claim.text)}
        verdicts = tuple(
            replace(
                self._verdict(claim, judged[position]), citations=marks[position], removed=claim.sentence in removed
            )
            for position, claim in enumerate(claims)
        )
        return CheckedAnswer(
            rewrite(text, claims, changed, removed | mentions),
            _verification(verdicts, claims, self._check.verify, len(removed)),
            self.evidence,
            self._spans(claims, judged),
        )

    def _marks(self, claim: Claim, judged: _Judged) -> tuple[int, ...]:
        """What the claim may cite: nothing where it is not carried, and the passage that decides where it cites another."""
        verdict, source = judged.judgement.verdict, judged.source
        if verdict is Verdict.NO_CLAIM or (verdict is Verdict.PARTLY and claim.numbers):
            return claim.numbers
        if not verdict.is_good:
            return ()
        if source is None or any(_is_near(source, each) for each in self.evidence if each.number in claim.numbers):
            return claim.numbers
        return (source.number,)

    def _spans(
        self, claims: Sequence[Claim], judged: Mapping[int, _Judged]
    ) -> Mapping[tuple[int, str], tuple[int, int]]:
        return {
            (each.source.number, claims[position].text): (each.judgement.start, each.judgement.end)
            for position, each in judged.items()
            if each.source is not None and each.judgement.end > each.judgement.start
        }

    async def _say(self, position: int, claim: Claim, judged: _Judged) -> None:
        if judged.judgement.verdict is Verdict.NO_CLAIM:
            return
        verdict = self._verdict(claim, judged)
        if self._said.get(position) != verdict:
            self._said[position] = verdict
            await self._journal.write(ClaimChecked(position, verdict))

    def _verdict(self, claim: Claim, judged: _Judged) -> SentenceVerdict:
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


def _key(claim: Claim) -> tuple[str, tuple[int, ...]]:
    return claim.text, claim.numbers


def _is_open(judged: _Judged) -> bool:
    """Whether the claim is one about documents that is not carried."""
    judgement = judged.judgement
    return not (judgement.is_action or judgement.verdict is Verdict.NO_CLAIM or judgement.verdict.is_good)


def _is_near(source: Evidence, other: Evidence) -> bool:
    """Whether two passages are one, or stand beside each other."""
    if source.document_id != other.document_id:
        return False
    gap = max(source.char_start, other.char_start) - min(source.char_end, other.char_end)
    return source.chunk_id == other.chunk_id or (source.char_end > 0 and other.char_end > 0 and gap <= _NEAR_CHARS)


def _span(judged: _Judged) -> DecidingSpan | None:
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
    return Verification(
        tuple(verdicts),
        citation_precision=kept / cited if cited else 0.0,
        citation_coverage=len(good) / len(about) if about else 0.0,
        support_status=status_of(verdicts),
        checked_by=least_certain(verdicts),
        verify=verify,
        removed=removed,
    )
