"""`groundwork research`: a question that may take several searches; plan, rounds and coverage are shown as they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from cli.client.gateway import Gateway, Json
from cli.client.searching import metadata_of
from cli.commands.conversations.chatting import Session, Verify, is_parked
from cli.display.answering import RunView
from cli.display.output import Output
from cli.errors import given, in_words
from cli.running import exit_code_of

Effort = Literal["auto", "low", "medium", "high"]
_Collections = Annotated[list[str], typer.Option("--collection", "-c", help="Where to look; repeatable.")]


@dataclass(frozen=True)
class ResearchQuestion:
    """What to research, and how."""

    text: str
    collection_ids: tuple[str, ...]
    options: Json

    def start(self) -> tuple[str, Json]:
        return "/v1/agent", {"question": self.text, "collection_ids": list(self.collection_ids), **self.options}


def research(
    question: Annotated[str, typer.Argument(help="The question.")],
    collection: _Collections = ["default"],  # noqa: B006 - typer copies it
    effort: Annotated[Effort, typer.Option(help="How much work it is worth; `auto` decides by the question.")] = "auto",
    report: Annotated[
        bool, typer.Option("--report", help="Write a report with sections instead of a short answer.")
    ] = False,
    thread: Annotated[str | None, typer.Option(help="Thread to continue.")] = None,
    where: Annotated[list[str], typer.Option("--where", help="KEY=VALUE of the metadata; repeatable.")] = [],  # noqa: B006
    date_from: Annotated[str | None, typer.Option("--from", help="Not before this date, as 2024-12-31.")] = None,
    date_to: Annotated[str | None, typer.Option("--to", help="Not after this date.")] = None,
    tool: Annotated[
        list[str], typer.Option("--tool", help="A tool that the plan may call besides searching; repeatable.")
    ] = [],  # noqa: B006
    max_seconds: Annotated[float | None, typer.Option(min=1, help="Seconds that it may take.")] = None,
    max_searches: Annotated[int | None, typer.Option(min=1, max=1000, help="Searches that it may make.")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, help="Dollars that models may cost.")] = None,
    verify: Verify = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show the answer only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> None:
    """Research a question: plan, search in rounds, follow names that were found, and say what is missing. Ctrl-C cancels it.

    Where the question does not say what it is about, effort high asks first. Exit code 3 when the answer is that the documents do
    not say.
    """
    output = Output(as_json=as_json)

    view = RunView(output, with_steps=not quiet)

    async def begin(gateway: Gateway) -> int:
        filters = {"metadata": metadata_of(where), "date_from": date_from, "date_to": date_to}
        budgets = {"wall_clock_s": max_seconds, "searches": max_searches, "cost_usd": max_cost}
        options: Json = {
            "effort": effort,
            "answer": "report" if report else "short",
            "thread_id": None if thread is None else given(thread, "thread"),
            "filters": filters if any(filters.values()) else None,
            **({"tools": [given(each, "tool") for each in tool]} if tool else {}),
            **({"verify": verify} if verify else {}),
            "budgets": {name: limit for name, limit in budgets.items() if limit},
        }
        asked = tuple(given(each, "collection") for each in collection)
        await view.follow(gateway, ResearchQuestion(in_words(question, "question"), asked, options), until=is_parked)
        return 0

    raise typer.Exit(Session(output).see_through(view, exit_code_of(begin, "Cancelled.")))
