import pytest

from kit.language.cues import is_negated, type_cue
from kit.language.questions import MAX_QUESTION_CHARS, AnswerKind, read_question
from kit.language.terms import stem, tokens

KINDS = [
    ("Who founded the company?", AnswerKind.PERSON),
    ("When was it founded?", AnswerKind.TIME),
    ("In what year did it open?", AnswerKind.TIME),
    ("And when did it close?", AnswerKind.TIME),
    ("What must I not forget when it rains?", AnswerKind.FACT),
    ("Do I get paid when I am ill?", AnswerKind.YES_NO),
    ("Where is the office?", AnswerKind.PLACE),
    ("Which city hosts the fair?", AnswerKind.PLACE),
    ("How many people work there?", AnswerKind.QUANTITY),
    ("How much does it cost?", AnswerKind.QUANTITY),
    ("What is the population of Freedonia?", AnswerKind.QUANTITY),
    ("How long do I have?", AnswerKind.DURATION),
    ("Why was it closed?", AnswerKind.REASON),
    ("How do I restart the service?", AnswerKind.MANNER),
    ("What is a qubit?", AnswerKind.DEFINITION),
    ("Define entropy", AnswerKind.DEFINITION),
    ("List the benefits", AnswerKind.LIST),
    ("Describe the process", AnswerKind.DESCRIPTION),
    ("Can software be returned?", AnswerKind.YES_NO),
    ("What did the board decide?", AnswerKind.FACT),
    ("refund policy", AnswerKind.KEYWORDS),
    ("Ist das Büro geöffnet?", AnswerKind.YES_NO),
    ("Was kostete das Wasser im letzten Jahr?", AnswerKind.QUANTITY),
    ("Was ist in der Miete enthalten?", AnswerKind.FACT),
    ("¿Se puede fumar?", AnswerKind.YES_NO),
    ("Est-ce que le musée est ouvert ?", AnswerKind.YES_NO),
    ("可以吸烟吗？", AnswerKind.YES_NO),
    ("ここは禁煙ですか？", AnswerKind.YES_NO),
    ("Wo liegt die Fabrik?", AnswerKind.FACT),
    ("首都はどこですか？", AnswerKind.FACT),
]


@pytest.mark.parametrize(("text", "kind"), KINDS)
def test_question_form_tells_the_kind_of_answer(text: str, kind: AnswerKind) -> None:
    assert read_question(text).kind is kind


def test_content_words_names_and_numbers_are_read() -> None:
    terms = read_question("When did Apollo 11 land on the moon?").terms
    assert [(t.surface, t.is_name, t.is_number) for t in terms] == [
        ("Apollo", True, False),
        ("11", False, True),
        ("land", False, False),
        ("moon", False, False),
    ]


def test_question_of_stop_words_keeps_them() -> None:
    assert read_question("Who are they?").terms


@pytest.mark.parametrize("text", ["", " ?! ", "…"])
def test_wordless_question_has_no_terms(text: str) -> None:
    assert read_question(text).terms == ()


def test_pasted_document_is_read_up_to_the_limit() -> None:
    assert all(term.end <= MAX_QUESTION_CHARS for term in read_question("word1 other2 " * 9_000).terms)


@pytest.mark.parametrize(
    "family",
    [
        "refund refunds refunded refunding",
        "policy policies",
        "organize organized organization",
        "write wrote written",
        "cost costs price",
        "Müller Muller Müller's",
        "1,500 1500",
    ],
)
def test_forms_of_one_word_meet(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


def test_scripts_without_spaces_are_read_in_pairs() -> None:
    assert [token.stem for token in tokens("東京都")] == ["東京", "京都"]


CUES = [
    ("When was it built?", "It was built in 1887.", "It was built of stone."),
    ("How many rooms are there?", "There are twelve rooms.", "There are rooms."),
    ("How long does it take?", "It takes three weeks.", "It takes a while."),
    ("Who wrote it?", "It was written by Ada Lovelace.", "it was written by a poet."),
    ("Where is the plant?", "The plant is in Leipzig.", "The plant is large."),
    ("Why did it fail?", "It failed because of rain.", "It failed badly."),
]


@pytest.mark.parametrize(("question", "with_answer", "without"), CUES)
def test_sentence_with_the_asked_type_has_the_stronger_cue(question: str, with_answer: str, without: str) -> None:
    read = read_question(question)
    assert type_cue(read, with_answer, tokens(with_answer)) > type_cue(read, without, tokens(without))


def test_year_of_the_question_is_no_answer_to_it() -> None:
    read = read_question("When after 1990 was it sold?")
    assert type_cue(read, "It was open in 1990.", tokens("It was open in 1990.")) == 0.0


def test_negation_is_seen_strictly_and_loosely() -> None:
    assert is_negated("Which items can't be returned?")
    assert not is_negated("Opened software is excluded.")
    assert is_negated("Opened software is excluded.", loosely=True)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Hi, how many days do I have?", "how many days do I have?"),
        ("Hallo zusammen, was kostet das?", "was kostet das?"),
        ("Hello", "Hello"),
        ("Hello World: what is it?", "Hello World: what is it?"),
        ("Hallo - wann öffnet das Museum?", "wann öffnet das Museum?"),
        ("你好，什么是光合作用？", "什么是光合作用？"),
        ("Hi-Fi systems: what do they cost?", "Hi-Fi systems: what do they cost?"),
    ],
)
def test_greeting_is_no_part_of_a_question(text: str, read: str) -> None:
    assert read_question(text).text == read


def test_name_behind_an_inverted_question_mark_begins_a_sentence() -> None:
    assert not any(token.is_name for token in tokens("¿Cuánto pagó?"))


@pytest.mark.parametrize(
    ("question", "content"),
    [
        ("Combien coûte l'entrée ?", ["coûte", "entrée"]),
        ("¿Cuántas plazas hay?", ["plazas", "hay"]),
        ("Hoeveel kost het?", ["kost"]),
        ("Сколько стоит вход?", ["стоит", "вход"]),
        ("Který vlak jede?", ["vlak", "jede"]),
    ],
)
def test_words_that_ask_are_no_content(question: str, content: list[str]) -> None:
    assert [term.surface for term in read_question(question).terms] == content
