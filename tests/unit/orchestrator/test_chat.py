"""Mode chat against fakes: what a model does with tools, what is judged and cited, what is said of limits."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import cast

import pytest

from kit.errors import Unavailable
from kit.llm import Delta, ModelUnavailable, Request, TextDelta, ToolsRefused
from kit.stores.forgetting import Source
from services.orchestrator.errors import Parked
from services.orchestrator.log.events import (
    Approval,
    Budgets,
    ClaimChecked,
    EffectClass,
    Plan,
    Retrieval,
    RunMode,
    RunStarted,
    RunStatus,
    SupportStatus,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    Verification,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import BroughtName, Tool, ToolSelection, Turn
from services.orchestrator.modes.chat import Chat
from services.orchestrator.modes.tool_answers import ChatLimits
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.toolloop.loop import LoopLimits
from tests.unit.orchestrator.chatting import (
    MATH,
    PAY,
    QUESTION,
    SEARCH,
    TOOLS,
    Chatting,
    RepeatedReplies,
    answer_of,
    answered,
    reasons,
    status_of,
)
from tests.unit.orchestrator.cutting import AT, KEY, now, shown_by
from tests.unit.orchestrator.fakes import EVIDENCE, FakeTools, MemoryLog
from tests.unit.orchestrator.toolloop.scripting import call, calls, said

FIND = calls(call("search", '{"queries": ["tower"]}'))
SUM = calls(call("math_eval", '{"expression": "6*7"}'))
GOOD = "The tower was built in 1889 by Gustave Eiffel. [1]"


def only(payloads: list[object], kind: type) -> list[object]:
    return [each for each in payloads if isinstance(each, kind)]


async def test_answer_from_documents_is_judged_and_cites_what_tools_found() -> None:
    chat = Chatting(RepeatedReplies([FIND, GOOD]))
    payloads = await chat.run()
    assert [type(each) for each in payloads if not isinstance(each, Thinking)][:5] == [
        RunStarted,
        Plan,
        ToolCall,
        ToolResult,
        Retrieval,
    ]
    answer = answer_of(payloads)
    assert answer.text == GOOD == shown_by(chat.log.events[KEY])
    assert (answer.method, answer.support_status) == ("model", SupportStatus.SIMILAR_WORDING)
    assert [citation.document_name for citation in answer.citations] == ["tower.txt"]
    assert len(only(payloads, Verification)) == 1
    assert status_of(payloads) is RunStatus.COMPLETED


class WaitsForVerdict(RepeatedReplies):
    """A model that writes on once a verdict on what it has written is in the log."""

    journal: Journal

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        follower = self.journal.follow()
        async with aclosing(super().complete(request)) as deltas:
            async for delta in deltas:
                yield delta
                if isinstance(delta, TextDelta) and delta.text.startswith(GOOD):
                    async for event in follower:
                        if isinstance(event.payload, ClaimChecked):
                            break


async def test_claims_are_judged_while_the_answer_is_written_with_tools() -> None:
    begun = TextDelta(f"{GOOD} It is")
    model = WaitsForVerdict([FIND, [begun, *said(" painted every week. [1]")]])
    chat = Chatting(model, collection_ids=("default",))
    model.journal = await Journal.open(KEY, chat.log, now)
    async with asyncio.timeout(60):
        await chat.work(model.journal)
    verdicts = [each.verdict for each in chat.payloads if isinstance(each, ClaimChecked)]
    assert [(each.sentence, str(each.verdict), each.searched) for each in verdicts] == [
        ("The tower was built in 1889 by Gustave Eiffel.", "similar_wording", False),
        ("It is painted every week.", "not_found", False),
        ("It is painted every week.", "not_found", True),
    ]
    assert answer_of(chat.payloads).text == f"{GOOD} It is painted every week."


async def test_answer_without_evidence_is_a_plain_answer_and_no_refusal() -> None:
    for replies in (["Hello! How can I help?"], [SUM, "It is 42."]):
        payloads = await Chatting(RepeatedReplies(replies)).run()
        answer = answer_of(payloads)
        assert (answer.support_status, answer.citations, answer.method) == (None, (), "model")
        assert not only(payloads, Verification)
        assert status_of(payloads) is RunStatus.COMPLETED


async def test_answer_that_nothing_found_carries_says_so() -> None:
    payloads = await Chatting(RepeatedReplies([FIND, "Visitors adore the view in summer."])).run()
    answer = answer_of(payloads)
    assert (answer.support_status, answer.citations) == (SupportStatus.INSUFFICIENT, ())
    assert status_of(payloads) is RunStatus.COMPLETED


async def test_answer_whose_citations_carry_nothing_gives_way_to_quotes() -> None:
    chat = Chatting(RepeatedReplies([FIND, "The tower was built in 1874. [1]"]))
    payloads = await chat.run()
    answer = answer_of(payloads)
    assert (answer.text, answer.method) == (GOOD, "extractive")
    assert shown_by(chat.log.events[KEY]) == GOOD
    assert "UNSUPPORTED_ANSWER" in reasons(payloads)
    assert answer.support_status is SupportStatus.SUPPORTED


async def test_numbers_count_over_all_calls_and_invented_ones_are_taken_out() -> None:
    third = replace(
        EVIDENCE[0], chunk_id="c3", document_id="d3", document_name="bell.txt", text="The bell weighs 13 tonnes."
    )
    outcomes = {"tower": answered("search", {}), "bell": ToolOutcome(True, {}, "1 passage found.", evidence=(third,))}
    tools = FakeTools(TOOLS, lambda name, arguments: outcomes[arguments["queries"][0]])
    bell = calls(call("search", '{"queries": ["bell"]}'))
    chat = Chatting(RepeatedReplies([FIND, bell, "The bell weighs 13 tonnes. [3][7]"]), tools)
    payloads = await chat.run()
    answer = answer_of(payloads)
    assert answer.text == "The bell weighs 13 tonnes. [1]" == shown_by(chat.log.events[KEY])
    assert [citation.document_name for citation in answer.citations] == ["bell.txt"]
    assert [[hit.number for hit in each.evidence] for each in only(payloads, Retrieval)] == [[1, 2], [3]]  # type: ignore[attr-defined]
    assert "INVENTED_CITATION" in reasons(payloads)


async def test_run_depends_on_what_tools_read_and_leaves_out_what_is_forgotten() -> None:
    chat = Chatting(RepeatedReplies([FIND, "The bridge was opened in 1932. [1]"]))
    chat.sources.forgotten = {(KEY.tenant_id, Source.document("d1"))}
    payloads = await chat.run()
    assert {source.item_id for _, source in chat.sources.noted} == {"d1", "d2"}
    (retrieval,) = only(payloads, Retrieval)
    assert [(hit.number, hit.document_id) for hit in retrieval.evidence] == [(1, "d2")]  # type: ignore[attr-defined]
    assert b"Eiffel" not in b"".join(event.state.result for event in chat.log.events[KEY] if event.state)
    assert [citation.document_id for citation in answer_of(payloads).citations] == ["d2"]


async def test_thread_is_read_and_continued() -> None:
    model = RepeatedReplies([GOOD])
    chat = Chatting(model, thread_id="t1")
    chat.memory.turns = [Turn("user", "Hello"), Turn("assistant", "Hi, Ann. [1]", "r0")]
    await chat.run()
    assert [message.role for message in model.requests[0].messages] == ["system", "user", "assistant", "user"]
    assert "[1]" not in model.requests[0].messages[2].content, "that number counts another run's passages"
    assert len(chat.memory.remembered) == 1


async def test_only_tools_that_the_request_names_are_offered() -> None:
    for selection, expected in (
        (None, ["search", "math_eval", "time_now"]),
        (ToolSelection(("math_eval",)), ["math_eval"]),
    ):
        model = RepeatedReplies(["Hello."])
        await Chatting(model, selection=selection).run()
        assert [spec.name for spec in model.requests[0].tools] == expected
    model = RepeatedReplies(["Hello."])
    payloads = await Chatting(model, selection=ToolSelection(())).run()
    assert not model.requests[0].tools
    assert answer_of(payloads).text == "Hello."


async def test_tools_that_do_not_fit_the_models_context_are_left_out_and_named() -> None:
    large = {
        "type": "object",
        "properties": {f"field{n}": {"type": "string", "description": "word " * 9} for n in range(16)},
    }
    others = [replace(MATH, name=f"large{n}", parameters=large) for n in range(4)]
    model = RepeatedReplies([FIND, GOOD], context_tokens=4096)
    payloads = await Chatting(model, FakeTools([*others, *TOOLS], answered)).run()
    shown = [spec.name for spec in model.requests[0].tools]
    assert shown[-3:] == ["search", "math_eval", "time_now"]
    assert len(shown) < 7
    (told,) = [each.text for each in payloads if isinstance(each, Thinking) and each.text.startswith("Tools: ")]
    assert all(f"large{n}" in told.partition("Not shown")[2] for n in range(4) if f"large{n}" not in shown)
    assert "CONTEXT_TOO_SMALL" not in reasons(payloads), "the message calls for none of them"
    assert answer_of(payloads).text == GOOD
    model = RepeatedReplies(["Hello."], context_tokens=4096)
    await Chatting(model, FakeTools([*TOOLS, *others], answered), selection=ToolSelection(("large3", "search"))).run()
    assert "large3" in [spec.name for spec in model.requests[0].tools], "what is asked for by name comes first"


async def test_tools_that_act_and_an_operators_own_are_shown_before_those_that_refine_a_search() -> None:
    large = {
        "type": "object",
        "properties": {f"field{n}": {"type": "string", "description": "word " * 9} for n in range(8)},
    }
    worth = {"compose_context": -1, "dedup_diversify": -1, "query_plan": -1, "send_email": 0, "working_day": 0}
    names = tuple(worth)
    others = [Tool(name, "", large, worth=each) for name, each in worth.items()]
    model = RepeatedReplies([FIND, GOOD], context_tokens=4096)
    await Chatting(model, FakeTools([*others, *TOOLS], answered)).run()
    shown = {spec.name for spec in model.requests[0].tools}
    assert {"search", "send_email", "working_day"} <= shown
    assert len(shown) < len(names) + len(TOOLS)


async def test_mail_to_an_address_is_shown_the_mail_tool_among_many_and_waits_for_a_person() -> None:
    to = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    mail = Tool(
        "send_email",
        "Sends an e-mail.",
        to,
        EffectClass.ONCE,
        needs_approval=True,
        called_for_by=(r"[^\s@]+@[^\s@]+\.\w",),
    )
    large = {
        "type": "object",
        "properties": {f"f{n}": {"type": "string", "description": "word " * 9} for n in range(16)},
    }
    others = [Tool(f"crm__entry{n}", "Changes entries.", large) for n in range(46)]
    model = RepeatedReplies([calls(call("send_email", '{"to": "a@example.org"}'))], context_tokens=4096)
    chat = Chatting(model, FakeTools([*others, *TOOLS, mail], answered), question="Mail this to a@example.org")
    with pytest.raises(Parked):
        await chat.run()
    assert "send_email" in [spec.name for spec in model.requests[0].tools]
    (approval,) = only(chat.payloads, Approval)
    assert approval.tool == "send_email"  # type: ignore[attr-defined]
    assert not chat.tools.made


async def test_run_goes_on_without_tools_when_they_are_away_and_says_so() -> None:
    class Away(FakeTools):
        async def offered(self) -> list[Tool]:
            raise Unavailable("the tools service is down")

    payloads = await Chatting(RepeatedReplies(["I cannot look it up."]), Away()).run()
    assert "UNAVAILABLE" in reasons(payloads)
    assert answer_of(payloads).text == "I cannot look it up."


async def test_model_that_takes_no_tools_is_answered_for_by_a_search() -> None:
    for error, reason in (
        (ToolsRefused("no tool parser"), "TOOLS_NOT_SUPPORTED"),
        (ModelUnavailable("it is down"), "LLM_UNAVAILABLE"),
    ):
        chat = Chatting(RepeatedReplies([error]))
        payloads = await chat.run()
        assert chat.tools.made == [("search", {"queries": ["When was the tower built?"]})]
        assert answer_of(payloads).text == GOOD
        assert reason in reasons(payloads)
        assert status_of(payloads) is RunStatus.COMPLETED


async def test_budgets_of_a_chat_are_tight_unless_the_request_asks_for_more() -> None:
    most = Budgets(wall_clock_s=120.0, answer_tokens=600, reasoning_steps=10, tool_calls=50, parallel_calls=4)
    for asked, expected in (
        (Budgets(), (3, 6, 3)),
        (Budgets(reasoning_steps=1, tool_calls=2), (1, 2, 3)),
        (Budgets(reasoning_steps=99, tool_calls=20, parallel_calls=9), (10, 20, 4)),
    ):
        payloads = await Chatting(budgets=asked, limits=ChatLimits(budgets=most)).run()
        told = payloads[0].budgets  # type: ignore[union-attr]
        assert (told.reasoning_steps, told.tool_calls, told.parallel_calls) == expected


async def test_spent_tokens_force_an_answer_and_what_is_skipped_is_said() -> None:
    chat = Chatting(RepeatedReplies([FIND, GOOD]), budgets=Budgets(tokens=100))
    payloads = await chat.run()
    assert "BUDGET_TOKENS" in reasons(payloads)
    answer = answer_of(payloads)
    assert (answer.text, answer.method) == (GOOD, "extractive")
    assert answer.support_status is SupportStatus.SUPPORTED


@pytest.mark.parametrize("steps", [1, 2, 3])
async def test_answer_comes_however_few_steps_are_allowed(steps: int) -> None:
    payloads = await Chatting(RepeatedReplies([FIND, GOOD]), budgets=Budgets(steps=steps)).run()
    assert answer_of(payloads).text


async def test_call_that_found_a_service_away_is_tried_once_more_under_its_own_key() -> None:
    outcomes = [ToolOutcome(False, {}, "the index is away", "SEARCH_UNAVAILABLE"), answered("search", {})]
    tools = FakeTools(TOOLS, lambda name, arguments: outcomes.pop(0))
    chat = Chatting(RepeatedReplies([FIND, GOOD]), tools)
    payloads = await chat.run()
    assert [each.call_id.rpartition("/round1/")[2] for each in only(payloads, ToolCall)] == ["call1", "call1/again"]  # type: ignore[attr-defined]
    assert answer_of(payloads).text == GOOD


@pytest.mark.parametrize("budgets", [Budgets(tool_calls=1), Budgets(steps=5)], ids=["calls", "steps"])
async def test_second_try_takes_nothing_that_the_answer_needs(budgets: Budgets) -> None:
    tools = FakeTools(TOOLS, lambda name, arguments: ToolOutcome(False, {}, "away", "SEARCH_UNAVAILABLE"))
    payloads = await Chatting(RepeatedReplies([FIND, "I could not search."]), tools, budgets=budgets).run()
    assert answer_of(payloads).text == "I could not search."
    assert answer_of(payloads).method == "model"
    assert len(tools.made) == (1 if budgets.tool_calls else 2)


async def test_tool_that_is_left_alone_is_not_tried_again() -> None:
    tools = FakeTools(TOOLS, lambda name, arguments: ToolOutcome(False, {}, "it keeps failing", "TOOL_UNAVAILABLE"))
    await Chatting(RepeatedReplies([FIND, "I could not search."]), tools).run()
    assert len(tools.made) == 1


async def test_call_that_changes_something_is_not_tried_again() -> None:
    pay = replace(PAY, needs_approval=False)
    tools = FakeTools([pay], lambda name, arguments: ToolOutcome(False, {}, "away", "UNAVAILABLE"))
    chat = Chatting(RepeatedReplies([calls(call("pay", "{}")), "I could not pay."]), tools)
    await chat.run()
    assert len(tools.made) == 1


async def test_call_that_needs_a_person_parks_the_run_without_holding_a_place() -> None:
    chat = Chatting(RepeatedReplies([calls(call("pay", "{}")), "Paid."]), FakeTools([PAY]))
    modes = chat.modes
    with pytest.raises(Parked):
        await modes.run(chat.record, await Journal.open(KEY, chat.log, now))
    assert isinstance(chat.payloads[-1], Approval)
    assert cast("Chat", modes.named(RunMode.CHAT))._agentic == 0


async def test_question_to_a_person_expires_before_the_key_of_the_users_model_does() -> None:
    chat = Chatting(RepeatedReplies([calls(call("pay", "{}")), "Paid."]), FakeTools([PAY]))
    limits = replace(chat.limits, loop=LoopLimits(approval_timeout_s=86_400.0))
    for brought, expires_in_s in ((None, 86_400.0), (BroughtName("m"), 3_600.0 - limits.budgets.wall_clock_s)):
        asking = replace(chat, limits=limits, brought=brought, log=MemoryLog())
        with pytest.raises(Parked):
            await asking.run()
        (asked,) = [each for each in asking.payloads if isinstance(each, Approval)]
        assert (asked.expires_at - AT).total_seconds() == pytest.approx(expires_in_s, abs=60.0)


@pytest.mark.parametrize(
    ("question", "choices"), [("When was the tower built?", ["required", "auto"]), ("Hello!", ["auto", "auto"])]
)
async def test_model_that_must_call_a_tool_first_must_not_for_small_talk(question: str, choices: list[str]) -> None:
    model = RepeatedReplies([FIND, GOOD])
    await Chatting(model, question=question, limits=ChatLimits(tool_choice="required")).run()
    assert [request.tool_choice for request in model.requests] == choices


async def test_chats_above_the_limit_get_one_search_and_are_told_so() -> None:
    chat = Chatting(RepeatedReplies([GOOD]), limits=ChatLimits(agentic_runs_max=1), others=1)
    payloads = await chat.run()
    assert payloads[0].mode is RunMode.QA  # type: ignore[union-attr]
    assert "SHED_TO_QA" in reasons(payloads)
    assert [name for name, _ in chat.tools.made] == ["search"]
    assert answer_of(payloads).text == GOOD
    assert not chat.model.requests[0].tools


@pytest.mark.parametrize("chat", [Chatting(), Chatting(RepeatedReplies([GOOD]), limits=ChatLimits(tool_calling=False))])
async def test_chat_whose_model_calls_no_tools_is_not_shed_and_counts_as_none(chat: Chatting) -> None:
    chat.others, chat.limits = 1, replace(chat.limits, agentic_runs_max=1)
    payloads = await chat.run()
    assert payloads[0].mode is RunMode.CHAT  # type: ignore[union-attr]
    assert "SHED_TO_QA" not in reasons(payloads)
    mode = chat.mode
    with mode.admitted(None):
        assert mode._agentic == 1


async def test_how_a_run_is_served_does_not_change_when_it_is_continued() -> None:
    for full_at_first in (True, False):
        chat = Chatting(RepeatedReplies([FIND, GOOD]), limits=ChatLimits(agentic_runs_max=1), others=int(full_at_first))
        first = chat.modes
        journal = await Journal.open(KEY, chat.log, now)
        with first.named(RunMode.CHAT).admitted(None) as mode:
            await journal.write(RunStarted(mode, QUESTION))
        chat.others = int(not full_at_first)
        await chat.run()
        routes = [each.route for each in only(chat.payloads, Plan)]  # type: ignore[attr-defined]
        assert routes == (["search"] if full_at_first else ["tools"])


async def test_run_whose_log_is_lost_may_read_and_not_act() -> None:
    pay = replace(PAY, needs_approval=False)
    model = RepeatedReplies([calls(call("search", '{"queries": ["tower"]}'), call("pay", "{}", 1)), GOOD])
    chat = Chatting(model, FakeTools([SEARCH, pay], answered))
    journal = await Journal.open(KEY, chat.log, now)
    live = journal.follow()
    chat.log.down = True
    await chat.work(journal)
    payloads = [event.payload async for event in live]
    assert [name for name, _ in chat.tools.made] == ["search"]
    assert "RUN_READ_ONLY" in [each.error_reason for each in only(payloads, ToolResult)]  # type: ignore[attr-defined]
    assert answer_of(payloads).text == GOOD


async def test_usage_tells_tokens_and_calls() -> None:
    (usage,) = only(await Chatting(RepeatedReplies([FIND, GOOD])).run(), Usage)
    assert (usage.tool_calls, usage.prompt_tokens) == (1, 200)  # type: ignore[attr-defined]
