"""A scripted model for claims: as the answer it says what the test asks for, and as the judge it knows what is true. A test
then measures what happens to claims on their way: splitting, spans, parsing, streaming, and what is shown."""

import json
import re
from collections.abc import Mapping
from typing import Any

from kit.testing.openai import Reply

SAY = "Say exactly: "
"""What a question begins with whose answer is scripted."""
_STATEMENT = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)
_PASSAGE = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
_PIECE_CHARS = 7
"""Odd, so that a verdict is cut anywhere while it streams."""


class ClaimsModel:
    """Gives each request its reply."""

    def __init__(self, truths: Mapping[str, bool]) -> None:
        """`truths`: claim → whether its passage carries it."""
        self._truths = truths
        self.judged: list[str] = []
        """Statements that it was asked about."""

    def reply_to(self, request: Mapping[str, Any]) -> Reply:
        """The judgement of statements where some are asked about, else the answer."""
        asked = str(request["messages"][-1]["content"])
        _, found, statements = asked.rpartition("\nStatements:\n")
        if found:
            return Reply(_pieces(self._judgement(asked, statements)))
        return Reply(_pieces(f"{asked.rpartition(SAY)[2].strip()} [1]"))

    def _judgement(self, asked: str, statements: str) -> str:
        first = _PASSAGE.search(asked)
        verdicts = [
            {
                "statement": int(number),
                "quote": "",
                "passage": int(first[1]) if first else 0,
                "verdict": "supported" if self._is_true(text) else "contradicted",
            }
            for number, text in _STATEMENT.findall(statements)
        ]
        return json.dumps({"verdicts": verdicts}, ensure_ascii=False)

    def _is_true(self, statement: str) -> bool:
        """A part of a claim is as true as the claim."""
        self.judged.append(statement)
        part, _, whole = statement.removesuffix(")").partition(" (part of: ")
        said = _bare(whole or part)
        return any(truth for claim, truth in self._truths.items() if said == _bare(claim))


def _bare(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().lower()


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS)]
