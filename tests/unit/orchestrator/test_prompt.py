"""The prompt fits the model's context, and what gives way gives way in order."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.llm import ChatMessage, ToolSpec
from services.orchestrator.errors import QuestionTooLong
from services.orchestrator.log.events import Evidence, RunStatus
from services.orchestrator.models import Turn
from services.orchestrator.prompts.fitting import Fitted
from services.orchestrator.prompts.messages import compose
from tests.unit.orchestrator.fakes import FakeModel

QUESTION = "When was the tower built?"
TURNS = [
    Turn("user", "hello there " * 10),
    Turn("assistant", "hi " * 20),
    Turn("user", "how?"),
    Turn("assistant", "so"),
]


def source(number: int, text: str) -> Evidence:
    return Evidence(number, f"c{number}", f"d{number}", f"file{number}.txt", text)


def words(count: int) -> str:
    return "word " * count


async def prompt_for(
    context_tokens: int,
    *,
    question: str = QUESTION,
    history: Sequence[Turn] = (),
    evidence: Sequence[Evidence] = (),
    answer_tokens: int = 100,
) -> Fitted:
    """Counted in words, which is below the estimate: what does not fit by the estimate is counted."""
    model = FakeModel([], context_tokens=context_tokens, counter=lambda text: len(text.split()))
    return await compose(question, history, evidence, model, answer_tokens=answer_tokens)


def counted(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message.content.split()) for message in messages)


async def test_all_of_it_is_sent_where_it_fits() -> None:
    prompt = await prompt_for(4096, history=TURNS, evidence=[source(1, words(50)), source(2, words(50))])
    assert prompt.is_whole
    assert [message.role for message in prompt.messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert prompt.max_tokens == 100


async def test_turns_that_came_to_no_answer_are_told_as_such() -> None:
    turns = [
        Turn("user", "When was the Halcyon built?"),
        Turn("assistant", "", "r1", RunStatus.CANCELLED),
        Turn("user", "Who sails it?"),
        Turn("assistant", "Its captain is", "r2", RunStatus.TIMEOUT),
    ]
    prompt = await prompt_for(4096, question="And since when?", history=turns, evidence=[source(1, words(5))])
    assert [message.content for message in prompt.messages[1:-1]] == [
        "When was the Halcyon built?",
        "(The user stopped this answer before it was finished.)",
        "Who sails it?",
        "Its captain is (This answer ran out of time before it was finished.)",
    ]


async def test_history_gives_way_first_and_its_oldest_turn_before_others() -> None:
    needed = counted((await prompt_for(4096, evidence=[source(1, words(50))])).messages)
    prompt = await prompt_for(needed + 100 + 90, history=TURNS, evidence=[source(1, words(50))])
    assert [message.content for message in prompt.messages[1:-1]] == ["how?", "so"]
    assert words(50) in prompt.messages[-1].content
    prompt = await prompt_for(needed + 100 + 60, history=TURNS, evidence=[source(1, words(50))])
    assert len(prompt.messages) == 2
    assert prompt.left_out_turns == 4


async def test_worst_evidence_gives_way_before_the_best() -> None:
    evidence = [source(number, words(100)) for number in (1, 2, 3)]
    prompt = await prompt_for(550, history=TURNS[2:], evidence=evidence)
    content = prompt.messages[-1].content
    assert "[1] (file1.txt)" in content
    assert "[2] (file2.txt)" in content
    assert "[3] (file3.txt)" not in content
    assert prompt.left_out_sources == 1


async def test_only_source_is_cut_at_a_sentence() -> None:
    text = " ".join(f"Fact {number} is that the tower has {number} steps." for number in range(100))
    prompt = await prompt_for(400, evidence=[source(1, text)])
    content = prompt.messages[-1].content.split("\n\nQuestion:")[0]
    assert prompt.is_cut
    assert content.endswith("steps.")
    assert "Fact 3 " in content
    assert "Fact 99 " not in content


async def test_sentence_without_end_is_cut_within() -> None:
    prompt = await prompt_for(400, evidence=[source(1, "a" * 100 + " " + words(5000))])
    assert 100 < counted(prompt.messages) < 300


async def test_question_that_leaves_no_room_is_refused_with_numbers() -> None:
    with pytest.raises(QuestionTooLong, match=r"1002 tokens.*600 tokens"):
        await prompt_for(600, question=words(1000), evidence=[source(1, "text")])


async def test_answer_takes_at_most_half_of_a_small_context() -> None:
    prompt = await prompt_for(600, evidence=[source(1, words(20))], answer_tokens=4000)
    assert prompt.max_tokens == 300


async def test_tools_have_their_room_too() -> None:
    model = FakeModel([], context_tokens=900, counter=lambda text: len(text.split()))
    tools = [ToolSpec("search", words(300), {"type": "object"})]
    prompt = await compose(QUESTION, (), [source(1, words(300))], model, answer_tokens=100, tools=tools)
    assert prompt.is_cut
    assert counted(prompt.messages) + 300 + prompt.max_tokens < 900


async def test_old_marks_do_not_leak() -> None:
    history = [
        Turn("user", "Why [1]?"),
        Turn("assistant", "It was built in 1889 [1]. By Eiffel 【2】 and [3, 4] others [source 5]."),
    ]
    prompt = await prompt_for(4096, history=history, evidence=[source(1, "text")])
    assert [message.content for message in prompt.messages[1:-1]] == [
        "Why?",
        "It was built in 1889. By Eiffel and others.",
    ]


async def test_roles_alternate_whatever_the_history_lacks() -> None:
    history = [Turn("assistant", "a"), Turn("user", "b"), Turn("user", "c"), Turn("assistant", "d"), Turn("user", "e")]
    prompt = await prompt_for(4096, history=history, evidence=[source(1, "text")])
    assert [(message.role, message.content) for message in prompt.messages[1:-1]] == [
        ("user", "b\n\nc"),
        ("assistant", "d"),
    ]


async def test_exact_counts_are_asked_for_only_where_an_estimate_does_not_do() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return len(text.split())

    model = FakeModel([], context_tokens=4096, counter=count)
    await compose(QUESTION, (), [source(1, "text")], model, answer_tokens=100)
    assert set(asked) == {""}
    model = FakeModel([], context_tokens=600, counter=count)
    await compose(QUESTION, (), [source(1, words(300))], model, answer_tokens=100)
    assert len(asked) > 2


@given(
    context_tokens=st.integers(300, 2000),
    turns=st.lists(st.text("ab .", max_size=400), max_size=5),
    sources=st.lists(st.text("xyz. \n", min_size=1, max_size=3000), max_size=4),
)
async def test_prompt_and_answer_never_exceed_the_context(
    context_tokens: int, turns: list[str], sources: list[str]
) -> None:
    roles = ("user", "assistant")
    history = [Turn(roles[index % 2], text) for index, text in enumerate(turns)]
    evidence = [source(number, text) for number, text in enumerate(sources, start=1)]
    try:
        prompt = await prompt_for(context_tokens, history=history, evidence=evidence, answer_tokens=150)
    except QuestionTooLong:
        return
    assert counted(prompt.messages) + prompt.max_tokens <= context_tokens
