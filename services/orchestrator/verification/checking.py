"""Checks an answer claim by claim while it is written, and as a whole once it is finished. A claim that
its citations do not carry is looked for once more, in the rest of the evidence and by a search of its own."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from kit import deadline
from kit.errors import GroundworkError
from kit.grounding import Judge
from kit.observability.telemetry import span
from services.orchestrator.log.events import (
    ClaimChecked,
    Degradation,
    Evidence,
    SentenceVerdict,
    Thinking,
    Verification,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.verification.actions import Effect, claimed_action, happened
from services.orchestrator.verification.claims import Claim, split_claims
from services.orchestrator.verification.consequences import (
    CheckedAnswer,
    JudgedPlace,
    are_near,
    take_consequences,
    verdict_of,
)
from services.orchestrator.verification.judges import ClaimJudge, JudgedClaim, JudgedPassage, Judgement, WordJudge
from services.orchestrator.verification.rewriting import rewrite
from services.orchestrator.verification.verdicts import EFFECTS, Verdict, Verify

Find = Callable[[str], Awaitable[Sequence[Evidence]]]
"""The best passages for a claim, noted as text that the run holds. Raises GroundworkError."""

_MOST_SEARCHES = 3
"""Claims of one answer that are searched for by themselves."""
_FOUND_PASSAGES = 3
"""Passages of such a search that the claim is judged against."""
_SLOW_SENTENCES = 3
"""New sentences that a judge that is not quick is asked for at once: each call has the passages in it again."""
_PARAGRAPH_END_CHARS = 4
_LEAST_SEARCH_S = 3.0
"""Of the run's time: with less nothing is searched for any more."""
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


class Checking:
    """The check of one answer. What was judged once is not judged again while its text and its citations stay the same."""

    def __init__(self, check: AnswerCheck, question: str, evidence: Sequence[Evidence], journal: Journal) -> None:
        self._check = check
        self._question = question
        self._journal = journal
        self.evidence = list(evidence)
        self._words = Judge(evidence, question)
        self._known: dict[tuple[str, tuple[int, ...]], JudgedPlace] = {}
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
        """Within it finished sentences of what is heard are judged. A judge that takes its time is asked for several at once, and
        for what was written meanwhile when it has answered. What is written anew is listened to anew."""
        self._latest, self._is_written = "", False
        self._news.clear()
        if self._check.verify is Verify.OFF or not self.evidence:
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
            finished = [claim for claim in claims if claim.sentence < last]  # the last may not have all its marks
            new = {claim.sentence for claim in finished if _key(claim) not in self._known}
            if self._check.judges[0].is_quick or len(new) >= _SLOW_SENTENCES or _ends_paragraph(self._latest, finished):
                await self._judge_all(finished)

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
        mentions = {claim.sentence for claim in claims if self._words.is_mention(claim.text)}
        return take_consequences(text, claims, judged, self.evidence, self._check.verify, mentions)

    async def _judge_all(self, claims: Sequence[Claim]) -> dict[int, JudgedPlace]:
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
            settled = each if action is None or action.is_of_document else self._compared_with_effects(action.kind)
            judged[position] = self._known[_key(claim)] = settled
            await self._say(position, claim, settled)
        return {position: judged.get(position, JudgedPlace(_NOTHING, None)) for position in range(len(claims))}

    def _settled(self, claim: Claim) -> JudgedPlace | None:
        """What needs no judge, or was judged before."""
        if (known := self._known.get(_key(claim))) is not None:
            return known
        action = claimed_action(claim.text, is_cited=bool(claim.numbers))
        if action is not None:
            by_effects = self._compared_with_effects(action.kind)
            if action.is_certain or not self.evidence or by_effects.judgement.verdict is Verdict.SUPPORTED:
                return by_effects
        is_claim = self._words.is_claim(claim.text)
        return None if is_claim and not claim.is_frame else JudgedPlace(_NOTHING, None)

    def _compared_with_effects(self, kind: str) -> JudgedPlace:
        verdict = happened(kind, self._check.effects())
        return JudgedPlace(Judgement(verdict, EFFECTS, is_action=True), None)

    def _judged_claim(self, claim: Claim) -> JudgedClaim:
        """Against what it cites and what belongs to that; one that cites nothing against all there is."""
        cited = [number for number, each in enumerate(self.evidence) if each.number in claim.numbers]
        near = [
            number
            for number, each in enumerate(self.evidence)
            if number not in cited and any(are_near(each, self.evidence[other]) for other in cited)
        ]
        return JudgedClaim(claim.text, [*cited, *near] or list(range(len(self.evidence))), claim.whole)

    async def _ask(
        self, claims: Mapping[int, JudgedClaim], *, searched: bool = False
    ) -> AsyncGenerator[tuple[int, JudgedPlace], None]:
        """What the first judge that answers says; the others say what it leaves out."""
        passages = [
            JudgedPassage(each.text, each.document_name, each.heading_path, each.page, each.origin)
            for each in self.evidence
        ]
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

    def _placed(self, judgement: Judgement, *, searched: bool) -> JudgedPlace:
        if judgement.is_action:
            return replace(self._compared_with_effects(""), searched=searched)
        source = None if judgement.passage is None else self.evidence[judgement.passage]
        return JudgedPlace(judgement, source, searched)

    async def _say_away(self, error: GroundworkError) -> None:
        if error.reason not in self._away:
            self._away.add(error.reason)
            note = Degradation("verify", error.reason, error.message)
            await self._journal.write(Thinking("verify", "Asking another judge.", note))

    async def _look_again(self, claims: Sequence[Claim], judged: Mapping[int, JudgedPlace]) -> dict[int, JudgedPlace]:
        """The claims that are carried by other passages than those that they cite."""
        open_claims = [position for position, each in judged.items() if each.is_open]
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

    async def _say(self, position: int, claim: Claim, judged: JudgedPlace) -> None:
        if judged.judgement.verdict is Verdict.NO_CLAIM:
            return
        verdict = verdict_of(claim, judged)
        if self._said.get(position) != verdict:
            self._said[position] = verdict
            await self._journal.write(ClaimChecked(position, verdict))


def _ends_paragraph(text: str, finished: Sequence[Claim]) -> bool:
    """Whether the last of the finished claims ends its paragraph."""
    return bool(finished) and "\n\n" in text[finished[-1].stop : finished[-1].stop + _PARAGRAPH_END_CHARS]


def _key(claim: Claim) -> tuple[str, tuple[int, ...]]:
    return claim.text, claim.numbers
