"""The steps of a run as lines: which tool was called with what, what came of it, and what the whole cost. With rich's markup."""

from __future__ import annotations

import json
from typing import Any

from cli.client.gateway import Json
from cli.client.sse import Event
from cli.display.terminal import escape
from cli.display.tool_names import agent_in_words, in_words

ARGUMENT_CHARACTERS_MAX = 80
SUMMARY_CHARACTERS_MAX = 240
_DECISIONS = {
    "allowed": "[green]allowed[/green]",
    "denied": "[red]denied[/red]",
    "expired": "[red]not decided in time[/red]",
}

_STATES = {"found": "green", "partly": "yellow", "conflicting": "yellow", "missing": "red"}
_PLACES = {
    "question": "The question",
    "tool_result": "A result of a tool",
    "answer": "The answer",
    "reasoning": "What the model thinks",
    "arguments": "A call",
}
_KINDS = {
    "injection": "gives orders to the model",
    "exfiltration": "asks for secrets",
    "abuse": "asks for harm",
    "canary": "gave instructions away",
    "address": "had an address with data in it",
}
_ACTIONS = {"removed": "it was taken out", "ended": "the text ends before it"}


def step_line(event: Event, names: dict[str, str]) -> str:
    """The line of an event; empty for one that is no step. `names` has the tools of the calls so far, and is added to."""
    data = event.data
    match event.kind:
        case "tool":
            names[data["call_id"]] = data["name"]
            return f"[bold]→ {escape(in_words(data['name']))}[/bold] ({escape(_arguments(data['arguments']))})"
        case "tool_result":
            return _result(data, in_words(names.get(data["call_id"], "the tool")))
        case "approval" | "input":
            return _asked(data) if event.kind == "input" else _approval(data)
        case "parked":
            return f"[yellow]… waits until {escape(data['until'] or 'it is decided')}[/yellow]"
        case "thinking" if data.get("phase") == "resume":
            return f"  {escape(data['text'])}"
        case _:
            return _other_line(event)


def _other_line(event: Event) -> str:
    if event.kind == "agent":
        return escape(agent_in_words(event.data["name"], event.data["chosen_by"]))
    return _unsafe(event.data) if event.kind == "safety" else research_line(event)


def research_line(event: Event) -> str:
    """The line of a round of research; empty for another event."""
    data = event.data
    match event.kind:
        case "plan" if data.get("round"):
            return _planned(data)
        case "retrieval" if data.get("round"):
            return _found(data)
        case "coverage":
            return _covered(data)
        case _:
            return ""


def cost_line(usage: Json) -> str:
    """`2 tool calls · 1200 + 56 tokens · $0.0020 · 2.5 s · qwen`; empty when nothing is known."""
    calls, read, written = (usage.get(name) or 0 for name in ("tool_calls", "prompt_tokens", "completion_tokens"))
    parts = [
        f"{calls} tool call{'s' if calls != 1 else ''}" if calls else "",
        f"{read} + {written} tokens" if read or written else "",
        f"${usage['cost_usd']:.4f}" if usage.get("cost_usd") else "",
        duration(usage["seconds"]) if usage.get("seconds") else "",
        escape(usage.get("model") or ""),
    ]
    return " · ".join(part for part in parts if part)


def arguments_lines(arguments: Json) -> list[str]:
    """Each argument whole, on lines of its own: what is to be decided about is read to the end."""
    lines = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *more = text.splitlines() or [""]
        lines += [f"  {escape(name)}: {escape(first)}", *(f"    {escape(line)}" for line in more)]
    return lines or ["  (no arguments)"]


def duration(seconds: float) -> str:
    """`48 ms`, `2.3 s`."""
    return f"{max(1, round(seconds * 1000))} ms" if seconds < 0.95 else f"{seconds:.1f} s"


def _planned(data: Json) -> str:
    searches = "; ".join(shortened(each["text"], ARGUMENT_CHARACTERS_MAX) for each in data["sub_queries"])
    on = data.get("investigation")
    where = f"{data['effort']}, on {shortened(on, ARGUMENT_CHARACTERS_MAX)}" if on else data["effort"]
    return f"[bold]Round {data['round']}[/bold] ({escape(where)}): {escape(searches)}"


def _found(data: Json) -> str:
    found = len(data["evidence"])
    kept = f"{found} passage{'s' if found != 1 else ''} kept"
    return f"  {data['searches']} searches; {kept}" if data["searches"] else f"  Investigations joined; {kept}"


def _covered(data: Json) -> str:
    """The coverage and its table: a line for each part of the question."""
    on = data.get("investigation")
    if on:
        return f"  Covered: {data['share']:.0%} of {escape(shortened(on, ARGUMENT_CHARACTERS_MAX))}"
    lines = [f"  Covered: {data['share']:.0%}"]
    for part in data["parts"]:
        numbers = "".join(f"[{number}]" for number in part["evidence"])
        colour = _STATES.get(part["state"], "dim")
        state = escape(str(part["state"]))
        lines.append(
            f"    [{colour}]{state:<11}[/{colour}] {escape(shortened(part['text'], ARGUMENT_CHARACTERS_MAX))} {escape(numbers)}"
        )
    return "\n".join(lines)


def _result(data: Json, name: str) -> str:
    took = f"  [dim]{duration(data['duration_ms'] / 1000)}[/dim]" if data.get("duration_ms") else ""
    error = data.get("error")
    if data["ok"] or not error:
        return f"  [green]✓[/green] {escape(name)}: {escape(shortened(data['summary'] or 'done', SUMMARY_CHARACTERS_MAX))}{took}"
    reason = f"{error['message'] or data['summary']} ({error['reason']})"
    return f"  [red]✗[/red] {escape(name)}: {escape(shortened(reason, SUMMARY_CHARACTERS_MAX))}{took}"


def _unsafe(data: Json) -> str:
    """`! Passage [3] gives orders to the model: "Ignore all rules"`."""
    where = f"Passage [{data['passage']}]" if data["passage"] else _PLACES.get(data["place"], data["place"])
    said = f': "{shortened(data["text"], ARGUMENT_CHARACTERS_MAX)}"' if data["text"] else ""
    done = f"; {_ACTIONS[data['action']]}" if data["action"] in _ACTIONS else ""
    finding = f"{where} {_KINDS.get(data['kind'], data['kind'])}{said}{done}"
    return f"[yellow]! {escape(finding)}[/yellow]"


def _approval(data: Json) -> str:
    tool = escape(in_words(data["tool"]))
    if data["decision"] == "pending":
        return f"[yellow]? {tool}: needs your approval[/yellow] ({escape(_arguments(data['arguments']))})"
    by = f" by {escape(data['decided_by'])}" if data.get("decided_by") else ""
    return f"  {tool}: {_DECISIONS.get(data['decision'], escape(str(data['decision'])))}{by}"


def _asked(data: Json) -> str:
    if data["state"] == "pending":
        return f"[yellow]? {escape(data['question'])}[/yellow]"
    return f"  You: {escape(data['text'])}" if data["text"] else "  Nobody answered in time."


def _arguments(arguments: dict[str, Any]) -> str:
    shown = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return ", ".join(shortened(each, ARGUMENT_CHARACTERS_MAX) for each in shown)


def shortened(text: str, most: int) -> str:
    """On one line, at most that many characters."""
    words = " ".join(text.split())
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"
