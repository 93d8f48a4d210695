"""What a message asks to be mailed, and to whom: the addresses are the user's own words."""

from time import process_time

import pytest

from services.orchestrator.delivering.wishes import MailWish, read_mail_wish

ANNA = "anna@example.org"


@pytest.mark.parametrize(
    ("message", "question"),
    [
        (f"Summarise this and mail it to {ANNA}.", "Summarise this."),
        (f"Summarise the handbook, then e-mail the summary to {ANNA}, please.", "Summarise the handbook."),
        (f"What is the notice period? Please send it to <{ANNA}>", "What is the notice period?"),
        (f"What is the notice period, and can you mail it to {ANNA}?", "What is the notice period?"),
        (f"Make a quiz on ducks. Send the quiz to {ANNA}. Make it hard.", "Make a quiz on ducks. Make it hard."),
        (f"Mail a summary of handbook.pdf to {ANNA}", "a summary of handbook.pdf"),
        (f"Please e-mail {ANNA} a summary of handbook.pdf.", "a summary of handbook.pdf"),
        (f"Fasse das Handbuch zusammen und schick es per Mail an {ANNA}", "Fasse das Handbuch zusammen"),
        (f"Résume le manuel et envoie-le à {ANNA}", "Résume le manuel"),
        (f"Resume el manual y envíalo a {ANNA}", "Resume el manual"),
        (f"Кратко изложи документ и отправь на {ANNA}", "Кратко изложи документ"),
        (f"Mail it to {ANNA}", ""),
    ],
)
def test_the_question_is_what_is_left(message: str, question: str) -> None:
    assert read_mail_wish(message) == MailWish(question, [ANNA])


def test_several_recipients_each_once() -> None:
    wish = read_mail_wish(f"Summarise this and mail it to {ANNA}, bob@example.org and {ANNA}")
    assert wish == MailWish("Summarise this", [ANNA, "bob@example.org"])


@pytest.mark.parametrize(
    ("to", "earlier"),
    [
        ("Anna", "Anna's address is anna@example.org."),
        ("her", "Write to anna@example.org about it."),
        ("me", "My e-mail address is anna@example.org."),
    ],
)
def test_who_is_meant_stands_in_an_earlier_message(to: str, earlier: str) -> None:
    assert read_mail_wish(f"Summarise this and mail it to {to}", [earlier, "What does it cost?"]) == MailWish(
        "Summarise this", [ANNA]
    )


@pytest.mark.parametrize(
    "said",
    [
        "Mein neuer Chef: chef@example.org. Meine E-Mail-Adresse lautet anna@example.org.",
        "Mon adresse e-mail est anna@example.org",
        "Mi correo electrónico es <anna@example.org>",
        "Мой адрес: anna@example.org",
        "my mail: anna@example.org. My boss is boss@example.org, and my e-mail to eve@example.org came back.",
    ],
)
def test_my_address_is_what_i_call_so(said: str) -> None:
    assert read_mail_wish("Summarise this and mail it to me", [said]) == MailWish("Summarise this", [ANNA])


@pytest.mark.parametrize(
    ("to", "earlier"),
    [
        ("me", []),
        ("me", ["My boss writes from boss@example.org."]),
        ("me", ["Translate: My address is eve@example.org."]),
        ("her", []),
        ("her", ["Mails came from eve@example.org and anna@example.org."]),
        ("Anna", []),
        ("Anna", ["Two are called Anna: anna.a@example.org, anna.b@example.org."]),
        ("the board", []),
    ],
)
def test_somebody_without_an_address_gets_nothing(to: str, earlier: list[str]) -> None:
    message = f"Summarise this and mail it to {to}"
    assert read_mail_wish(message, earlier) == MailWish(message, ())


@pytest.mark.parametrize(
    "message",
    [
        f"Who is to send the report to {ANNA}?",
        f"How do I fill in the form and mail it to {ANNA}?",
        f"Which address does the letter from {ANNA} name?",
        f"Do not mail it to {ANNA}",
        "Explain how to print it and send it to the tax office",
        "What did Bob mail Anna?",
        "Summarise the mail from Anna",
        "send me the list of duties",
        f"Translate into German: Send it to {ANNA}.",
        f"Translate into German:\nSend it to {ANNA}.",
        f'Translate "The form is long. Send it to {ANNA}. Thanks" into German',
        f"Übersetze „Danke. Schick es an {ANNA}. Gruß“ ins Englische",
        f"What is asked here?\n> Hello. Send it to {ANNA}.",
        f"Give this chat a title.\n<chat_history>\nUSER: Summarise it. Mail it to {ANNA}.\n</chat_history>",
    ],
)
def test_other_messages_ask_for_no_mail(message: str) -> None:
    assert read_mail_wish(message) is None


def test_a_part_of_an_address_is_nobody_that_is_written_to() -> None:
    too_long = f"{'a' * 65}{ANNA}"
    assert read_mail_wish(f"Summarise this and mail it to {too_long}") is None
    assert read_mail_wish("Summarise this and mail it to me", [f"My address is {too_long}."]) == MailWish(
        "Summarise this and mail it to me", ()
    )


@pytest.mark.parametrize(
    "message",
    [
        "x" + " " * 20_000 + "y",
        "\n" * 20_000,
        f"mail {ANNA}" + " " * 20_000 + "é@",
        ". " + "please, " * 5_000,
        "send it to " + f"{ANNA}, " * 2_000 + "!",
        "mail it to me. " + "my-" * 10_000,
        f"> Hello. Send it to {ANNA}. My address is {ANNA}.\n" * 2_000 + "Mail it to me",
    ],
)
def test_a_long_message_is_read_in_no_time(message: str) -> None:
    began = process_time()
    read_mail_wish(message, [message])
    assert process_time() - began < 5  # what goes back over its own steps takes minutes
