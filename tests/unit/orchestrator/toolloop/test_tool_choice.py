"""Which tools a model is shown: a tool that the message calls for is never left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kit.errors import Unavailable
from kit.llm import ModelInfo, Operation, Request, estimate_tokens
from services.orchestrator.adapters.services.tools import _tool
from services.orchestrator.log.events import Budgets
from services.orchestrator.models import RunRequest, Tool, ToolSelection, Turn
from services.orchestrator.modes.toolboxes import Toolbox, Toolboxes
from services.orchestrator.ports import SentenceScorer
from services.orchestrator.toolloop.tool_choice import tools_called_for
from services.tools import toolbox
from services.tools.adapters.wire import encode_tool
from services.tools.sources.discovery import discover
from tests.unit.orchestrator.fakes import FakeTools

REAL = [_tool(encode_tool(tool)) for tool in discover(toolbox).values() if not tool.policy.other_name_of]
CALLS_FOR = [
    ("Mail this to a@example.org", "send_email"),
    ("Send Ann the summary", "send_email"),
    ("Schick das bitte an die Buchhaltung", "send_email"),
    ("Envoie le résumé par courriel à Paul", "send_email"),
    ("Envíale un correo a María con el informe", "send_email"),
    ("Отправь это письмо Анне", "send_email"),
    ("把这个发给王先生", "send_email"),
    ("この要約をメールで送って", "send_email"),
    ("Remember that the boat is blue", "rag_index"),
    ("Merk dir, dass das Boot blau ist", "rag_index"),
    ("Запомни: лодка синяя", "rag_index"),
    ("Guarda una nota: el barco es azul", "rag_index"),
    ("Delete the document 'Q3 report.md'", "rag_forget"),
    ("Lösche bitte die Notiz über das Boot", "rag_forget"),
    ("Supprime le fichier budget.xlsx", "rag_forget"),
    ("Which documents do I have?", "rag_list"),
    ("Welche Dateien sind hochgeladen?", "rag_list"),
    ("Какие документы у меня есть?", "rag_list"),
    ("What is 1250 * 1.19?", "math_eval"),
    ("What is six times seven?", "math_eval"),
    ("Wie viel sind 15 Prozent von 80?", "math_eval"),
    ("Calcule la moyenne de 3, 4 et 8", "math_eval"),
    ("What day is it?", "time_now"),
    ("Wie spät ist es?", "time_now"),
    ("Который час в Токио?", "time_now"),
    ("What did we decide last quarter?", "temporal_normalize"),
    ("Was wurde letzte Woche beschlossen?", "temporal_normalize"),
    ("Read https://api.example.com/v1/orders/7", "http_get"),
    ("POST the order to https://api.example.com/v1/orders", "http_request"),
    ("Which projects used Python?", "search_projects"),
    ("Gib mir einen Überblick über die Projekte", "portfolio"),
    ("Расскажи подробно о проекте Aquila", "get_project_details"),
    ("Look it up in the knowledge base", "search"),
    ("Steht das in der Wissensdatenbank?", "search"),
    ("Is it true that the notice period is six weeks? Please verify.", "verify"),
    ("Stimmt es, dass die Frist sechs Wochen beträgt?", "verify"),
    ("Give me the full text of the contract document", "fetch_docs"),
    ("Покажи весь документ", "fetch_docs"),
    ("Rephrase this query in other words", "multi_query_rewrite"),
    ("Rerank these passages", "rerank"),
    ("Are there duplicates among the passages?", "dedup_diversify"),
    ("What does the contract say about notice periods?", "search"),
    ("Was steht im Vertrag über Kündigungsfristen?", "search"),
]


@dataclass
class Model:
    """A model with a context, whose server does not count."""

    context_tokens: int

    def info(self, operation: Operation) -> ModelInfo:
        return ModelInfo("test", "test", self.context_tokens)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        return [estimate_tokens(text) for text in texts]

    def complete(self, request: Request) -> Any:
        raise AssertionError("nobody asks it")


@dataclass
class Meaning:
    """A model server that knows one tool that a message is about."""

    name: str = ""
    failure: Exception | None = None

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        if self.failure is not None:
            raise self.failure
        return [1.0 if sentence.startswith(f"{self.name}:") else 0.0 for sentence in sentences]


class _Run:
    """As much of a run as a choice of tools takes."""

    class budgets:  # noqa: N801
        budgets = Budgets(answer_tokens=600)


async def chosen(
    message: str,
    context_tokens: int,
    tools: Sequence[Tool] = REAL,
    scorer: SentenceScorer | None = None,
    *,
    history: Sequence[Turn] = (),
    names: ToolSelection | None = None,
) -> Toolbox:
    run: Any = _Run()
    request: Any = RunRequest(None, message, tools=names)  # type: ignore[arg-type]
    boxes = Toolboxes(FakeTools(tools), Model(context_tokens), scorer or Meaning(failure=Unavailable("away")))
    return await boxes.listed(run, request, history, for_model=True)


def shown(box: Toolbox) -> list[str]:
    return [tool.name for tool in box.shown]


def generated(count: int) -> list[Tool]:
    """Tools of another server, as large as real ones."""
    fields = {f"field_{n}": {"type": "string", "description": f"Value number {n} of the entry."} for n in range(8)}
    return [
        Tool(f"server__entry_{n}", f"Changes entries of list {n}.", {"type": "object", "properties": fields})
        for n in range(count)
    ]


@pytest.mark.parametrize("context_tokens", [4096, 16_384])
@pytest.mark.parametrize(("message", "name"), CALLS_FOR)
async def test_tool_that_the_message_calls_for_is_shown(message: str, name: str, context_tokens: int) -> None:
    """Without the model server, and among fifty tools."""
    assert name in shown(await chosen(message, context_tokens))
    assert name in shown(await chosen(message, context_tokens, [*generated(27), *REAL]))


async def test_choice_is_the_same_each_time_and_fits() -> None:
    tools = [*generated(27), *REAL]
    first, again = await chosen("Hello", 4096, tools), await chosen("Hello", 4096, tools)
    assert first == again
    assert "search" in shown(first)
    assert 0 < len(first.shown) < 10
    assert len(first.shown) < len((await chosen("Hello", 16_384, tools)).shown) < len(tools)
    assert sorted([*shown(first), *first.left_out]) == sorted(tool.name for tool in tools if not tool.on_request)


async def test_request_that_names_a_tool_by_another_name_gets_the_tool() -> None:
    search = replace(next(tool for tool in REAL if tool.name == "search"), other_names=("rag_search",))
    box = await chosen(
        "Hello",
        16_384,
        [*(tool for tool in REAL if tool.name != "search"), search],
        names=ToolSelection(("rag_search", "math_eval")),
    )
    assert shown(box) == ["math_eval", "search"]
    assert "search" in box.needed


async def test_tool_whose_words_or_meaning_are_those_of_the_message_goes_before_others() -> None:
    tools = [*generated(40), *REAL]
    invoice = Tool("crm__invoice", "Makes an invoice for a customer.", tools[0].parameters)
    assert "crm__invoice" in shown(await chosen("Make an invoice for the customer", 4096, [*tools, invoice]))
    meant = await chosen("Bitte eine Rechnung stellen", 4096, [*tools, invoice], Meaning("crm invoice"))
    assert "crm__invoice" in shown(meant)
    assert not meant.by_words
    assert "crm__invoice" not in shown(await chosen("Bitte eine Rechnung stellen", 4096, [*tools, invoice]))


async def test_choice_by_words_alone_is_said_only_where_something_is_left_out() -> None:
    small, large = await chosen("Hello", 4096), await chosen("Hello", 200_000)
    assert [box.event().degraded and box.event().degraded.reason for box in (small, large)] == ["CHOSEN_BY_WORDS", None]
    assert large.left_out == []


async def test_tool_that_is_called_by_its_name_is_shown() -> None:
    tools = [*generated(27), *REAL]
    for words in ("server__entry_26", "server entry 26"):
        assert "server__entry_26" in shown(await chosen(f"Use {words} for this", 4096, tools))


async def test_message_before_counts_as_far_as_there_is_room() -> None:
    history = [Turn("user", "Mail this to a@example.org"), Turn("assistant", "Shall I?", "r0")]
    assert "send_email" in shown(await chosen("Yes please", 4096, history=history))
    assert "send_email" not in shown(await chosen("Yes please", 4096))


async def test_what_is_called_for_at_the_end_of_a_long_text_is_seen() -> None:
    assert "send_email" in shown(await chosen("word " * 20_000 + "\nMail this to a@example.org", 4096))


async def test_what_the_request_names_goes_first_and_is_missed_aloud() -> None:
    names = ToolSelection(("compose_context", "dedup_diversify", "rerank"))
    assert "compose_context" in shown(await chosen("Hello", 4096, names=names))
    large = [replace(tool, description="word " * 3000) for tool in generated(2)]
    box = await chosen("Hello", 4096, large, names=ToolSelection(tuple(tool.name for tool in large)))
    event = box.event()
    assert event.degraded is not None
    assert (event.degraded.reason, box.shown) == ("CONTEXT_TOO_SMALL", [])


async def test_log_keeps_the_schemas_of_shown_tools_only() -> None:
    box = await chosen("Hello", 4096)
    assert all(bool(tool.parameters) == (tool.name not in box.left_out) for tool in box.offered)
    assert not any(tool.called_for_by for tool in box.offered)


def test_pattern_that_is_none_calls_for_nothing() -> None:
    assert not tools_called_for([Tool("odd", "", {}, called_for_by=("(",))], "(")
