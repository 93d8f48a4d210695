"""The judge that a language model is: one completion for all claims, by a JSON Schema, read while it is written."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from kit.llm import (
    ChatMessage,
    Delta,
    Finish,
    LanguageModel,
    ModelUnavailable,
    Operation,
    Request,
    Restart,
    Retraction,
    TextDelta,
)
from services.orchestrator.answering.quotes import closest_words
from services.orchestrator.log.events import CheckedBy
from services.orchestrator.prompts import rules
from services.orchestrator.prompts.fitting import fit
from services.orchestrator.prompts.passages import passage_block
from services.orchestrator.verification.judges import JudgedClaim, JudgedPassage, Judgement
from services.orchestrator.verification.verdicts import Verdict

_ACTION = "action"
_VERDICTS = (Verdict.SUPPORTED, Verdict.PARTLY, Verdict.CONTRADICTED, Verdict.NOT_FOUND, Verdict.NO_CLAIM, _ACTION)
_ITEM = {
    "type": "object",
    "properties": {
        "statement": {"type": "integer"},
        "quote": {"type": "string"},
        "passage": {"type": "integer"},
        "verdict": {"type": "string", "enum": [str(each) for each in _VERDICTS]},
    },
    "required": ["statement", "quote", "passage", "verdict"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"verdicts": {"type": "array", "items": _ITEM}},
    "required": ["verdicts"],
    "additionalProperties": False,
}
_TOKENS_OF_A_CLAIM, _TOKENS_AROUND = 120, 60
_LONGEST_REPLY_CHARS = 60_000
_SPACE = re.compile(r"\s+")


class VerdictsMissing(ModelUnavailable):
    """The model that checks claims has not said something usable about each of them."""

    reason = "LLM_VERDICTS_MISSING"


@dataclass(frozen=True)
class _Verdict:
    """What the model wrote about one claim."""

    claim: int
    verdict: str
    passage: int
    quote: str


class ModelJudge:
    """ClaimJudge by the model of the operation `verify`."""

    is_quick = False
    asks_model = True

    def __init__(
        self,
        model: LanguageModel,
        held: Callable[[], AbstractContextManager[None]] = nullcontext,
        *,
        timeout_s: float = 30.0,
        figures: Mapping[str, CheckedBy] | None = None,
    ) -> None:
        """`figures`: of models whose error was measured, by the name that a verdict has for them."""
        self._model = model
        self._held = held
        self._timeout_s = timeout_s
        self._figures = figures or {}

    @property
    def is_there(self) -> bool:
        return bool(self._model.info(Operation.VERIFY).model)

    async def judge(
        self, question: str, claims: Sequence[JudgedClaim], passages: Sequence[JudgedPassage]
    ) -> AsyncGenerator[tuple[int, Judgement], None]:
        with self._held():  # the model that is asked is the one that the prompt was made for
            name = f"model/{self._model.info(Operation.VERIFY).model}"
            checked_by = self._figures.get(name, CheckedBy(name))
            request = await self._request(question, claims, passages)
            judged: set[int] = set()
            async with aclosing(self._said(request)) as verdicts:
                async for said in verdicts:
                    if 0 <= said.claim < len(claims) and said.claim not in judged:
                        judged.add(said.claim)
                        yield said.claim, _judgement(said, claims[said.claim], passages, checked_by)
        if len(judged) < len(claims):
            raise VerdictsMissing(f"the model has judged {len(judged)} of {len(claims)} claims")

    async def _request(
        self, question: str, claims: Sequence[JudgedClaim], passages: Sequence[JudgedPassage]
    ) -> Request:
        """With the passages that are cited first: they are left out last where the context has no room for all."""
        cited = list(dict.fromkeys(number for claim in claims for number in claim.passages))
        order = [*cited, *(number for number in range(len(passages)) if number not in cited)]
        fitted = await fit(
            [ChatMessage("system", rules.JUDGE), ChatMessage("user", question)],
            self._model,
            _TOKENS_AROUND + _TOKENS_OF_A_CLAIM * len(claims),
            sources=[passage_block(number + 1, passages[number]) for number in order],
            render=partial(_asked, question, claims),
            operation=Operation.VERIFY,
        )
        return Request(fitted.messages, fitted.max_tokens, operation=Operation.VERIFY, schema=SCHEMA)

    async def _said(self, request: Request) -> AsyncGenerator[_Verdict, None]:
        """Each verdict as soon as it is written. Raises VerdictsMissing when the model takes too long."""
        text, read = "", 0
        async with aclosing(self._model.complete(request)) as deltas:
            async for delta in _in_time(deltas, self._timeout_s):
                match delta:
                    case TextDelta(piece):
                        text += piece
                        items, read = _items(text, read)
                        for item in items:
                            yield item
                    case Retraction() | Restart():
                        text, read = "", 0
                    case _:
                        pass
                if isinstance(delta, Finish) or len(text) > _LONGEST_REPLY_CHARS:
                    return


async def _in_time(deltas: AsyncGenerator[Delta, None], timeout_s: float) -> AsyncGenerator[Delta, None]:
    """The deltas that come within the time. Raises VerdictsMissing behind it."""
    ends_at = asyncio.get_running_loop().time() + timeout_s
    while True:
        try:
            async with asyncio.timeout_at(ends_at):
                delta = await anext(deltas)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise VerdictsMissing(f"the model took more than {timeout_s:g} s to check the claims") from error
        yield delta


def _items(text: str, start: int) -> tuple[list[_Verdict], int]:
    """The verdicts that are complete in the text from `start` on, and where the next one may begin."""
    decoder = json.JSONDecoder()
    found: list[_Verdict] = []
    if start == 0:
        start = text.find("[") + 1
    while start and (begin := text.find("{", start)) >= 0:
        try:
            item, start = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            break  # it goes on
        found += _read(item)
    return found, start


def _read(item: Any) -> Iterator[_Verdict]:
    """Nothing where the model did not follow the schema."""
    if not isinstance(item, Mapping):
        return
    claim, verdict = item.get("statement"), item.get("verdict")
    if isinstance(claim, int) and verdict in _VERDICTS:
        passage, quote = item.get("passage"), item.get("quote")
        number = passage - 1 if isinstance(passage, int) else -1
        yield _Verdict(claim - 1, str(verdict), number, quote if isinstance(quote, str) else "")


def _judgement(
    said: _Verdict, claim: JudgedClaim, passages: Sequence[JudgedPassage], checked_by: CheckedBy
) -> Judgement:
    if said.verdict == _ACTION:
        return Judgement(Verdict.CONTRADICTED, checked_by, is_action=True)
    verdict = Verdict(said.verdict)
    if verdict in (Verdict.NOT_FOUND, Verdict.NO_CLAIM):
        return Judgement(verdict, checked_by)
    passage = said.passage if 0 <= said.passage < len(passages) else claim.passages[0]
    start, end = closest_words(passages[passage].text, said.quote or claim.text)
    return Judgement(verdict, checked_by, None, passage, start, end)


def _asked(question: str, claims: Sequence[JudgedClaim], blocks: Sequence[str]) -> str:
    passages = "\n\n".join(blocks)
    statements = "\n".join(f"{number}. {_statement(claim)}" for number, claim in enumerate(claims, start=1))
    return f"Passages:\n\n{passages}\n\nQuestion: {_on_one_line(question)}\n\nStatements:\n{statements}"


def _statement(claim: JudgedClaim) -> str:
    text, whole = _on_one_line(claim.text), _on_one_line(claim.whole)
    return (
        text
        if not whole or (text.strip(" .") in whole and len(whole) < len(text) + 4)
        else f"{text} (part of: {whole})"
    )


def _on_one_line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()
