"""What a message wants, told by its words, in several languages."""

import pytest

from services.orchestrator.without_model.intents import Route, read_intent


@pytest.mark.parametrize(
    "message",
    [
        "hi",
        "Hello there! How are you?",
        "Thanks, bye",
        "Bonjour, ça va ?",
        "Hola, ¿qué tal?",
        "Guten Morgen!",
        "Привет! Как дела?",
        "你好！",
        "こんにちは",
        "مرحبا",
        "what can you do?",
        "Wer bist du?",
        "👍",
    ],
)
def test_small_talk_is_told_from_questions(message: str) -> None:
    assert read_intent(message).route is Route.TALK


@pytest.mark.parametrize(
    "message",
    [
        "Remember that my boat is blue",
        "Please send an e-mail to ann@example.org",
        "Can you send an e-mail to Ann?",
        "Could you please take a note?",
        "Delete the document handbook.pdf",
        "Take a note: buy milk",
        "Send a message to Ann, please",
        "Merk dir, dass mein Boot blau ist",
        "Bitte schicke eine E-Mail an Ann",
        "Notez que le bateau est bleu",
        "Envía un correo a Ana",
        "Запомни, что лодка синяя",
        f"Send an e-mail to Ann: {'long ' * 200}",
    ],
)
def test_requests_to_act_are_told_from_questions(message: str) -> None:
    assert read_intent(message).route is Route.ACT


@pytest.mark.parametrize(
    "message",
    [
        "When was the tower built?",
        "hello, what is the refund policy?",
        "why?",
        "Was kostet der Tarif?",
        "Какая гарантия у насоса?",
        "返金ポリシーは何ですか？",
        "How do I send an e-mail?",
        "What note must I keep?",
        "delete document",
        "Email IT support hours",
        "E-Mail IT Helpdesk",
        "Send it to the customer within 14 days",
        "E-Mail an den Support schreiben",
        "What time is it in the story?",
        "what is e",
        "8",
        "2024-01-15",
        "what is 2024-01-15?",
        "555-1234",
        "1914-1918",
        "12:30",
        "24/7",
        "C-3PO",
        "10 km / 2",
        "Thanks " * 200,
    ],
)
def test_whatever_is_nothing_else_is_a_question_about_documents(message: str) -> None:
    assert read_intent(message).route is Route.SEARCH


@pytest.mark.parametrize(
    "message",
    [
        "What time is it?",
        "what's the date today",
        "Wie spät ist es?",
        "Quelle heure est-il ?",
        "¿Qué hora es?",
        "какое сегодня число?",
        "现在几点了？",
        "今何時ですか？",
        "지금 몇 시예요?",
    ],
)
def test_questions_about_the_present_time(message: str) -> None:
    assert read_intent(message).route is Route.TIME


@pytest.mark.parametrize(
    ("message", "expression"),
    [
        ("what is 2+2?", "2+2"),
        ("12 * 3", "12 * 3"),
        ("1,250 * 1,5", "1250 * 1.5"),
        ("1 250 + 3 =", "1250 + 3"),
        ("15% of 80", "15 / 100 * 80"),
        ("Was ist 3 mal 4?", "3 * 4"),
        ("Сколько будет 7 умножить на 8?", "7 * 8"),
        ("what is 3 times 4 plus 2", "3 * 4 + 2"),
        ("5 minus 3", "5 - 3"),
        ("calculate 1914-1918", "1914-1918"),
        ("2 x 3", "2 * 3"),
        ("2^10", "2 ** 10"),
        ("６×７＝", "6 * 7"),
    ],
)
def test_sums_are_written_as_the_tool_takes_them(message: str, expression: str) -> None:
    intent = read_intent(message)
    assert (intent.route, intent.expression) == (Route.MATH, expression)


@pytest.mark.parametrize(
    "message",
    [
        "hi " * 130,
        "1+" * 190,
        "(" * 390,
        "how are you " * 33 + "x",
        "1,000" * 80,
        " x " * 130,
        "can you " * 50,
        "please " * 60,
    ],
)
def test_reading_takes_no_noticeable_time_whatever_is_written(message: str) -> None:
    """A pattern that backtracks would not come to an end here."""
    read_intent(message)
