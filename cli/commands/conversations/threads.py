"""`groundwork threads`: conversations, what was said in them, and removing them."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.deleting import GONE, Yes, delete_each
from cli.display.claims import claim_lines
from cli.display.output import Output, citation_line, verdict_lines
from cli.display.terminal import escape
from cli.errors import UsageError
from cli.running import WHERE, run

threads = typer.Typer(no_args_is_help=True, help="Threads: list, show, export, delete.", epilog=WHERE)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


class Format(StrEnum):
    """What a conversation is written as."""

    MARKDOWN = "markdown"
    DOCX = "docx"


class Language(StrEnum):
    """Of the words that are not of the conversation."""

    EN = "en"
    DE = "de"
    RU = "ru"
    HE = "he"


_ENDINGS = {
    "cancelled": "You stopped this answer.",
    "timeout": "This answer ran out of time.",
    "failed": "This answer failed.",
}
_SPEAKERS = {"user": "You", "assistant": "Groundwork"}


@threads.command(name="list")
def list_threads(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="At most this many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Your conversations, last used first. Go on with one: `groundwork chat --thread ID`."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        page = await gateway.request("GET", "/v1/threads", params={"page_size": limit})
        if as_json:
            output.json({"threads": page["threads"]})
            return 0
        rows = [
            [each["id"], str(each["message_count"]), each["updated_at"] or "", each["title"]]
            for each in page["threads"]
        ]
        output.table(["id", "messages", "last used", "title"], rows, whole={"id"})
        return 0

    run(command)


@threads.command(name="show")
def show_thread(
    thread_id: Annotated[str, typer.Argument(help="The thread.")],
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1000, help="At most so many of its last messages.")
    ] = 100,
    as_json: AsJson = False,
) -> None:
    """What was said in a conversation, oldest first, with the sources of each answer."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        thread = await gateway.request("GET", f"/v1/threads/{in_path(thread_id, 'thread')}", params={"limit": limit})
        if as_json:
            output.json(thread)
            return 0
        output.out.print(f"[bold]{escape(thread['title'])}[/bold]")
        for message in thread["messages"]:
            _say(output, message)
        return 0

    run(command)


@threads.command(name="export")
def export_thread(
    thread_id: Annotated[str, typer.Argument(help="The thread.")],
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it to this new file instead of standard output.")
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="The default is docx for a file that ends in .docx, else markdown."),
    ] = None,
    language: Annotated[Language, typer.Option(help="Of headings such as “Sources”.")] = Language.EN,
) -> None:
    """Write a conversation as Markdown or for a word processor, with the passages that each answer cites."""
    is_word = file is not None and file.suffix.lower() == ".docx"
    form = form or (Format.DOCX if is_word else Format.MARKDOWN)

    async def command(gateway: Gateway) -> int:
        if file is None and form is Format.DOCX:
            raise UsageError("docx is not text: name a file for it, with --output FILE.docx")
        if file is not None and file.exists():
            raise UsageError(f"{file} exists already; name a new file, or remove that one")
        path = f"/v1/threads/{in_path(thread_id, 'thread')}/export"
        content = await gateway.content(path, params={"format": form.value, "language": language.value})
        _write(content, file)
        return 0

    run(command)


@threads.command(name="quiz")
def answer_quiz(
    thread_id: Annotated[str, typer.Argument(help="The thread.")],
    quiz_id: Annotated[str, typer.Argument(help="The run that made the quiz.")],
    answers: Annotated[
        list[str] | None, typer.Argument(help="Answers such as q1=B q2=true q3='Gustave Eiffel'; none shows the quiz.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a quiz of a conversation, and see which answers are right."""
    output = Output(as_json=as_json)
    given = [_given(each) for each in answers or ()]

    async def command(gateway: Gateway) -> int:
        path = f"/v1/threads/{in_path(thread_id, 'thread')}/quizzes/{in_path(quiz_id, 'quiz')}"
        if given:
            quiz = await gateway.request("POST", f"{path}/answers", json={"answers": given})
        else:
            quiz = await gateway.request("GET", path)
        if as_json:
            output.json(quiz)
            return 0
        for question in quiz["questions"]:
            _say_question(output, question)
        output.out.print(f"\n{quiz['right']} of {quiz['answered']} right.")
        return 0

    run(command)


@threads.command(name="delete")
def delete_threads(
    thread_ids: Annotated[list[str], typer.Argument(help="Threads.")],
    forget: Annotated[bool, typer.Option("--forget", help="Forget what was learnt of you in them, too.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove conversations, and within a minute the runs of their questions. Without --forget what was learnt of you stays."""
    output = Output(as_json=as_json)
    also = " with what was learnt of you in it" if forget else ""

    async def command(gateway: Gateway) -> int:
        return await delete_each(
            gateway,
            "/v1/threads",
            thread_ids,
            output,
            what="thread",
            yes=yes,
            also=also,
            said=GONE,
            params={"forget": "true"} if forget else None,
        )

    run(command)


def _write(content: bytes, file: Path | None) -> None:
    if file is None:
        sys.stdout.write(content.decode())
        return
    try:
        with file.open("xb") as made:
            made.write(content)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}. Name another file with --output") from error


def _given(answer: str) -> Json:
    question_id, equals, given = answer.partition("=")
    if not equals or not question_id:
        raise UsageError(f"{answer!r} is no answer; write q1=B, with the id of the question before the sign")
    return {"question_id": question_id, "given": given}


def _say_question(output: Output, question: Json) -> None:
    output.out.print(f"\n[bold]{escape(question['id'])}[/bold] {escape(question['question'])}")
    for letter, option in zip("ABCDEFGH", question["options"], strict=False):
        output.out.print(f"   {letter}) {escape(option)}")
    if result := question["result"]:
        verdict = "right" if result["is_right"] else f"wrong, it is: {escape(result['answer'])}"
        output.out.print(f"   {escape(result['given'])}: {verdict}")
        output.out.print(f"   [dim]{escape(result['explanation'])}[/dim]")


def _say(output: Output, message: Json) -> None:
    speaker = _SPEAKERS.get(message["role"] or "", "Unknown")
    output.out.print(f"\n[bold]{speaker}:[/bold] {escape(message['text'])}")
    for citation in message.get("citations") or ():
        output.out.print(f"  {citation_line(citation)}")
    for line in claim_lines(message):
        output.out.print(f"  {line}")
    ending = _ENDINGS.get(message.get("run_status") or "")
    output.remarks([f"  {line}" for line in (*verdict_lines(message), *([ending] if ending else []))])
