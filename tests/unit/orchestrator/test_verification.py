"""The check of an answer: how it is split, judged and rewritten, whichever judge says what."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from kit.errors import Unavailable
from services.orchestrator.answering.quotes import number_quotes
from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import CheckedBy, ClaimChecked, Evidence, SupportStatus, Thinking
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey
from services.orchestrator.verification.actions import Effect, claimed_action
from services.orchestrator.verification.checking import AnswerCheck, Checking
from services.orchestrator.verification.claims import split_claims
from services.orchestrator.verification.consequences import CheckedAnswer
from services.orchestrator.verification.judges import JudgedClaim, JudgedPassage, Judgement, WordJudge
from services.orchestrator.verification.verdicts import Verdict, Verify
from tests.unit.orchestrator.fakes import MemoryLog

KEY = RunKey("local", "r1")
EVIDENCE = (
    Evidence(1, "c1", "d1", "tower.txt", "The tower was built in 1889 by Gustave Eiffel. It is 330 metres high."),
    Evidence(2, "c2", "d2", "bridge.txt", "The bridge was opened in 1932 after eight years of work.", page=3),
)
RIGHT = CheckedBy("right", measured=True, false_passed=0.0, true_failed=0.0, claims=100)


@dataclass
class Scripted:
    """Finds a claim carried by a passage that holds the words it is told, else says what it is told."""

    carried: Mapping[str, str] = field(default_factory=dict)
    """Claim → words of the passage that carries it."""
    others: Mapping[str, Verdict] = field(default_factory=dict)
    checked_by: CheckedBy = RIGHT
    is_there: bool = True
    is_quick: bool = False
    asks_model: bool = False
    error: Unavailable | None = None
    asked: list[Sequence[JudgedClaim]] = field(default_factory=list)

    async def judge(
        self, question: str, claims: Sequence[JudgedClaim], passages: Sequence[JudgedPassage]
    ) -> AsyncGenerator[tuple[int, Judgement], None]:
        self.asked.append(claims)
        if self.error is not None:
            raise self.error
        for position, claim in enumerate(claims):
            words = self.carried.get(claim.text)
            found = [number for number in claim.passages if words and words in passages[number].text]
            if found and words:
                start = passages[found[0]].text.index(words)
                yield position, Judgement(Verdict.SUPPORTED, self.checked_by, 0.9, found[0], start, start + len(words))
            else:
                yield position, Judgement(self.others.get(claim.text, Verdict.NOT_FOUND), self.checked_by)


async def checked(
    text: str, check: AnswerCheck, evidence: Sequence[Evidence] = EVIDENCE, log: MemoryLog | None = None
) -> CheckedAnswer:
    journal = await Journal.open(KEY, log or MemoryLog(), lambda: datetime.now(UTC))
    return await Checking(check, "", evidence, journal).check(text)


def verdicts(answer: CheckedAnswer) -> list[str]:
    assert answer.verification is not None
    return [each.verdict for each in answer.verification.sentences]


BUILT = {"The tower was built in 1889.": "built in 1889"}


async def test_claim_that_is_not_supported_loses_its_mark_and_keeps_its_words() -> None:
    judge = Scripted(BUILT)
    answer = await checked("The tower was built in 1889. [1] It is painted every week. [1]", AnswerCheck([judge]))
    assert answer.text == "The tower was built in 1889. [1] It is painted every week."
    assert verdicts(answer) == ["supported", "not_found"]
    assert answer.verification is not None
    assert answer.verification.support_status is SupportStatus.PARTIAL
    assert answer.verification.checked_by == RIGHT
    assert (answer.verification.citation_coverage, answer.verification.citation_precision) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("The tower was built in 1889. [1] It is painted every week. [1]", "The tower was built in 1889. [1]"),
        ("It is painted every week. [1] The tower was built in 1889. [1]", "The tower was built in 1889. [1]"),
        (
            "Facts:\n\n- The tower was built in 1889. [1]\n- It is painted every week. [1]\n- More follows soon",
            "Facts:\n\n- The tower was built in 1889. [1]",
        ),
        (
            "Its colour:\n- It is painted every week. [1]\n\nThe tower was built in 1889. [1]",
            "The tower was built in 1889. [1]",
        ),
    ],
    ids=["behind", "before", "list", "lead-in"],
)
async def test_removing_leaves_readable_text(text: str, left: str) -> None:
    answer = await checked(text, AnswerCheck([Scripted(BUILT)], Verify.REMOVE))
    assert answer.text == left
    assert answer.verification is not None
    assert answer.verification.support_status is SupportStatus.SUPPORTED
    assert answer.verification.removed == sum(each.removed for each in answer.verification.sentences) > 0


async def test_off_checks_nothing_and_says_so() -> None:
    judge = Scripted()
    answer = await checked("The tower was built in 1889. [1]", AnswerCheck([judge], Verify.OFF))
    assert answer.text == "The tower was built in 1889. [1]"
    assert answer.verification is not None
    assert (answer.verification.verify, answer.verification.support_status) == ("off", None)
    assert judge.asked == []


async def test_uncited_claim_gets_the_passage_that_carries_it() -> None:
    judge = Scripted({"The bridge was opened in 1932.": "opened in 1932"})
    answer = await checked("The bridge was opened in 1932. Visitors enjoy it.", AnswerCheck([judge]))
    assert answer.text == "The bridge was opened in 1932. [2] Visitors enjoy it."


async def test_claim_that_cites_the_wrong_passage_gets_the_right_one() -> None:
    judge = Scripted({"The bridge was opened in 1932.": "opened in 1932"})
    answer = await checked("The bridge was opened in 1932. [1]", AnswerCheck([judge]))
    assert answer.text == "The bridge was opened in 1932. [2]"
    assert verdicts(answer) == ["supported"]


async def test_claim_that_nothing_carries_is_searched_for_once_by_itself() -> None:
    asked = []

    async def find(claim: str) -> Sequence[Evidence]:
        asked.append(claim)
        return [Evidence(1, "c9", "d9", "paint.txt", "Painters renew the coat of the tower every seven years.")]

    judge = Scripted({**BUILT, "It is painted every seven years.": "every seven years"})
    text = "The tower was built in 1889. [1] It is painted every seven years. [1]"
    answer = await checked(text, AnswerCheck([judge], find=find))
    assert asked == ["It is painted every seven years."]
    assert answer.text == "The tower was built in 1889. [1] It is painted every seven years. [3]"
    assert answer.evidence[-1].document_name == "paint.txt"
    assert answer.verification is not None
    assert [each.searched for each in answer.verification.sentences] == [False, True]
    assert answer.verification.sentences[1].span is not None
    assert answer.verification.sentences[1].span.text == "every seven years"


async def test_search_that_fails_is_said_and_the_claim_stays_not_found() -> None:
    async def find(claim: str) -> Sequence[Evidence]:
        raise Unavailable("search is away")

    log = MemoryLog()
    answer = await checked("It is painted every week. [1]", AnswerCheck([Scripted()], find=find), log=log)
    assert verdicts(answer) == ["not_found"]
    said = [each.payload for each in log.events[KEY]]
    assert any(isinstance(each, Thinking) and each.degraded for each in said)


async def test_at_most_three_claims_are_searched_for() -> None:
    asked: list[str] = []

    async def find(claim: str) -> Sequence[Evidence]:
        asked.append(claim)
        return ()

    text = " ".join(f"Visitor number {number} climbed the stairs. [1]" for number in range(100, 106))
    await checked(text, AnswerCheck([Scripted()], find=find))
    assert len(asked) == 3


async def test_judge_that_fails_is_followed_by_the_next_and_it_is_said() -> None:
    log = MemoryLog()
    away = Scripted(error=Unavailable("the judge is away", reason="JUDGE_AWAY"))
    answer = await checked("The tower was built in 1889. [1]", AnswerCheck([away, Scripted(BUILT)]), log=log)
    assert verdicts(answer) == ["supported"]
    said = [each.payload for each in log.events[KEY] if isinstance(each.payload, Thinking)]
    assert [each.degraded.reason for each in said if each.degraded] == ["JUDGE_AWAY"]


async def test_model_is_not_asked_when_no_budget_is_left() -> None:
    def spent() -> None:
        raise BudgetSpent("the tokens of this run are used up", budget="tokens")

    model, log = Scripted(asks_model=True), MemoryLog()
    check = AnswerCheck([model, Scripted(BUILT)], require_model=spent)
    answer = await checked("The tower was built in 1889. [1]", check, log=log)
    assert (verdicts(answer), model.asked) == (["supported"], [])
    said = [each.payload for each in log.events[KEY] if isinstance(each.payload, Thinking)]
    assert [each.degraded.reason for each in said if each.degraded] == [BudgetSpent.reason]


async def test_verdicts_are_said_claim_by_claim() -> None:
    log = MemoryLog()
    await checked(
        "The tower was built in 1889. [1] It is painted every week. [1]", AnswerCheck([Scripted(BUILT)]), log=log
    )
    said = [each.payload for each in log.events[KEY] if isinstance(each.payload, ClaimChecked)]
    assert [(each.index, each.verdict.verdict) for each in said] == [(0, "supported"), (1, "not_found")]


async def test_finished_sentences_are_judged_while_the_answer_is_written() -> None:
    log = MemoryLog()
    journal = await Journal.open(KEY, log, lambda: datetime.now(UTC))
    judge = Scripted(BUILT, is_quick=True)
    text = "The tower was built in 1889. [1] It is painted every week. [1]"
    checking = Checking(AnswerCheck([judge]), "", EVIDENCE, journal)
    async with checking.listening():
        follower = journal.follow()
        checking.hear(text[:50])
        event = await anext(aiter(follower))
    assert isinstance(event.payload, ClaimChecked)
    assert event.payload.verdict.sentence == "The tower was built in 1889."
    await checking.check(text)
    judged = [claim.text for claims in judge.asked for claim in claims]
    assert judged.count("The tower was built in 1889.") == 1


async def test_judge_that_takes_its_time_is_asked_for_several_sentences_while_the_answer_is_written() -> None:
    log = MemoryLog()
    journal = await Journal.open(KEY, log, lambda: datetime.now(UTC))
    judge = Scripted(BUILT)
    sentences = ["The tower was built in 1889. [1]", "It is blue. [1]", "It is round. [1]", "It is old. [1]"]
    checking = Checking(AnswerCheck([judge]), "", EVIDENCE, journal)
    async with checking.listening():
        follower = aiter(journal.follow())
        for count in range(1, 5):
            checking.hear(" ".join(sentences[:count]))
        said = [(await anext(follower)).payload for _ in range(3)]
    assert [each.verdict.sentence for each in said if isinstance(each, ClaimChecked)] == [
        "The tower was built in 1889.",
        "It is blue.",
        "It is round.",
    ]
    await checking.check(" ".join(sentences))
    assert [[claim.text for claim in claims] for claims in judge.asked][:2] == [
        ["The tower was built in 1889.", "It is blue.", "It is round."],
        ["It is old."],
    ]


async def test_end_of_a_paragraph_is_judged_at_once() -> None:
    journal = await Journal.open(KEY, MemoryLog(), lambda: datetime.now(UTC))
    checking = Checking(AnswerCheck([Scripted(BUILT)]), "", EVIDENCE, journal)
    async with checking.listening():
        follower = aiter(journal.follow())
        checking.hear("The tower was built in 1889. [1]\n\nIt is")
        event = await anext(follower)
    assert isinstance(event.payload, ClaimChecked)


@pytest.mark.parametrize(
    ("claim", "is_similar"),
    [
        ("Gustave Eiffel built the tower in 1889. [1]", True),
        ("The tower was built in 1890. [1]", False),
        ("The tower was built in 1889 by Jean Nouvel. [1]", False),
        ("Visitors enjoy wonderful sunsets there. [1]", False),
    ],
)
async def test_words_never_say_that_a_source_supports_a_claim(claim: str, is_similar: bool) -> None:
    answer = await checked(claim, AnswerCheck([WordJudge()]))
    assert verdicts(answer) == ["similar_wording" if is_similar else "not_found"]
    assert answer.verification is not None
    status = SupportStatus.SIMILAR_WORDING if is_similar else SupportStatus.INSUFFICIENT
    assert answer.verification.support_status is status


@pytest.mark.parametrize(
    "text", ["How many weeks of leave? [1]", "The source is: tower.txt [1]", "Yes. [1]", "See page 2. [1]"]
)
async def test_echo_of_the_question_or_mention_of_a_source_is_no_claim(text: str) -> None:
    assert (await checked(text, AnswerCheck([Scripted()]))).verification is None


async def test_mentions_of_sources_are_left_out_and_interjections_stay() -> None:
    answer = "Yes. The tower was built in 1889. [1]\n\nSource: tower.txt [1]\nSource: bridge.txt [2]"
    assert (await checked(answer, AnswerCheck([Scripted(BUILT)]))).text == "Yes. The tower was built in 1889. [1]"


@pytest.mark.parametrize(
    "answer",
    [
        "Here are the facts:\n\n- The tower was built in 1889. [1]",
        "## Some facts\n\nThe tower was built in 1889. [1]",
        "7. The tower was built in 1889. [1]",
        "| Thing | Year |\n|---|---|\n| tower built | 1889 [1] |",
    ],
    ids=["lead-in", "heading", "number", "table"],
)
async def test_frame_of_a_list_or_table_is_no_claim(answer: str) -> None:
    judge = Scripted({**BUILT, "| tower built | 1889 |": "1889"})
    verification = (await checked(answer, AnswerCheck([judge]))).verification
    assert verification is not None
    assert verification.support_status is SupportStatus.SUPPORTED


@pytest.mark.parametrize("frame", ["It was sold in 1999:", "It belongs to Jean Nouvel:", "# Sold in 1999"])
async def test_frame_that_states_a_fact_is_a_claim(frame: str) -> None:
    answer = await checked(f"{frame}\n\nThe tower was built in 1889. [1]", AnswerCheck([Scripted(BUILT)]))
    assert verdicts(answer) == ["not_found", "supported"]


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        (
            "The tower stands in Paris [1] and the bridge crosses the harbour [2].",
            [("The tower stands in Paris", (1,)), ("and the bridge crosses the harbour.", (2,))],
        ),
        (
            "The tower stands in Paris; the bridge crosses the harbour. [1]",
            [("The tower stands in Paris", (1,)), ("the bridge crosses the harbour.", (1,))],
        ),
        (
            "The tower stands in Paris, but the bridge crosses the harbour. [1][2]",
            [("The tower stands in Paris", (1, 2)), ("but the bridge crosses the harbour.", (1, 2))],
        ),
        ("It costs 3 € [1], 4 € from May on [2].", [("It costs 3 €, 4 € from May on.", (1, 2))]),
        (
            "Apples, pears and plums are sold, but no nuts. [1]",
            [("Apples, pears and plums are sold, but no nuts.", (1,))],
        ),
        ("The tower was built in 1889.\n[1]", [("The tower was built in 1889.", (1,))]),
        (
            "[1] The tower was built.\n[2] The bridge was opened.",
            [("The tower was built.", (1,)), ("The bridge was opened.", (2,))],
        ),
        ("- The tower was built. [1]", [("The tower was built.", (1,))]),
        (
            "Den Ofen darf man öffnen, während der kleine Timer läuft. [1]",
            [("Den Ofen darf man öffnen, während der kleine Timer läuft.", (1,))],
        ),
    ],
)
def test_sentence_is_split_where_each_part_states_something(
    answer: str, claims: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert [(each.text, each.numbers) for each in split_claims(answer)] == claims


async def test_clause_keeps_the_mark_that_stands_behind_the_next_one() -> None:
    judge = Scripted({"The tower stands in Paris": "tower"})
    answer = await checked("The tower stands in Paris; the bridge crosses the harbour. [1]", AnswerCheck([judge]))
    assert answer.text == "The tower stands in Paris; [1] the bridge crosses the harbour."


async def test_neighbouring_passage_is_context_of_a_citation() -> None:
    first = Evidence(1, "c1", "d1", "plan.md", "The roof will be repaired.", char_start=0, char_end=26)
    second = Evidence(2, "c2", "d1", "plan.md", "Work on it begins in May.", char_start=28, char_end=53)
    judge = Scripted({"The repair of the roof begins in May.": "begins in May"})
    answer = await checked("The repair of the roof begins in May. [1]", AnswerCheck([judge]), (first, second))
    assert len(judge.asked) == 1
    assert verdicts(answer) == ["supported"]
    assert answer.text == "The repair of the roof begins in May. [1]"


SENT, KEPT = Effect("send_email"), Effect("rag_index")


@pytest.mark.parametrize(
    ("text", "effects", "verdict"),
    [
        ("I have sent the e-mail to Anna.", (), "contradicted"),
        ("I have sent the e-mail to Anna.", (SENT,), "supported"),
        ("I have sent the e-mail to Anna.", (KEPT,), "contradicted"),
        ("I have sent the e-mail to Anna.", (Effect("http_request"),), "supported"),
        ("I have sent the e-mail to Anna.", (Effect("send_email", is_certain=False),), "not_found"),
        ("Done: the note is kept.", (), "contradicted"),
        ("Done: the note is kept.", (KEPT,), "supported"),
        ("Ich habe die Notiz gespeichert.", (), "contradicted"),
        ("Я сохранил заметку.", (KEPT,), "supported"),
    ],
)
async def test_claim_about_an_action_is_compared_with_the_effects_of_the_run(
    text: str, effects: tuple[Effect, ...], verdict: str
) -> None:
    answer = await checked(text, AnswerCheck([Scripted()], effects=lambda: effects), ())
    assert verdicts(answer) == [verdict]
    assert answer.verification is not None
    assert answer.verification.sentences[0].is_action
    assert answer.verification.support_status is (None if verdict == "supported" else SupportStatus.INSUFFICIENT)


async def test_action_that_a_document_tells_of_is_judged_by_the_document() -> None:
    judge = Scripted({"The letter was sent on Monday.": "sent"})
    letter = Evidence(1, "c1", "d1", "log.txt", "Monday: letter sent.")
    answer = await checked("The letter was sent on Monday. [1]", AnswerCheck([judge]), (letter,))
    assert verdicts(answer) == ["supported"]
    assert answer.verification is not None
    assert not answer.verification.sentences[0].is_action


@pytest.mark.parametrize(
    ("text", "is_action"), [("The shop is closed on Sundays. [1]", False), ("Done: it is closed. [1]", True)]
)
async def test_cited_sentence_about_a_thing_that_no_document_carries_is_no_action(text: str, is_action: bool) -> None:
    rules = Evidence(1, "c1", "d1", "rules.txt", "On Sundays the shop is not open.")
    answer = await checked(text, AnswerCheck([Scripted()]), (rules,))
    assert verdicts(answer) == ["contradicted" if is_action else "not_found"]
    assert answer.verification is not None
    assert answer.verification.sentences[0].is_action is is_action


ACTIONS = (
    "I've saved it.",
    "Ich habe die E-Mail an Anna gesendet.",
    "J'ai envoyé le message.",
    "He enviado el correo.",
    "Ho inviato la mail.",
    "Enviei o e-mail.",
    "Ik heb de e-mail verstuurd.",
    "Wysłałem e-mail.",
    "Письмо отправлено.",
    "Я надіслав листа.",
    "E-postayı gönderdim.",
    "تم حفظ الملاحظة.",
    "שלחתי את המייל.",
    "我已经发送了邮件。",
    "メールを送信しました。",
)


@pytest.mark.parametrize("sentence", ACTIONS)
def test_actions_are_known_in_the_languages_of_answers(sentence: str) -> None:
    assert claimed_action(sentence, is_cited=False)


@pytest.mark.parametrize(
    "sentence",
    [
        "The tower was built in 1889.",
        "I found nothing about it.",
        "Die Frist beträgt drei Monate.",
        "Я не нашёл этого.",
        "合同的期限是三个月。",
        "Done well, it lasts long.",
    ],
)
def test_what_documents_say_is_no_action(sentence: str) -> None:
    assert claimed_action(sentence, is_cited=False) is None


async def test_marks_of_found_passages_become_citations() -> None:
    judge = Scripted({"The bridge was opened in 1932.": "opened in 1932"})
    answer = await checked("The bridge was opened in 1932. [1]", AnswerCheck([judge]))
    (only,) = number_quotes(answer.text, answer.evidence, answer.spans).citations
    assert only.text[only.quote_start : only.quote_end] == "opened in 1932"


async def test_citation_recall_counts_claims_by_their_own_citations() -> None:
    text = "The tower was built in 1889. [1] The bridge was opened in 1932. [1] It is painted every week. [1]"
    judge = Scripted({**BUILT, "The bridge was opened in 1932.": "opened in 1932"})
    answer = await checked(text, AnswerCheck([judge]))
    assert answer.verification is not None
    shares = answer.verification.citation_precision, answer.verification.citation_recall
    assert shares == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert answer.verification.citation_coverage == pytest.approx(2 / 3)
