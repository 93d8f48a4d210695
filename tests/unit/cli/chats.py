"""What a scripted server tells of a chat, and one whose run waits for a person."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.cli.conftest import FakeServer, Handler, run_event

STARTED = run_event("run", 1, mode="chat", question="q", model="", thread_id="0123456789ab")
CALL = run_event(
    "tool", 2, call_id="r1/a", name="search", arguments={"query": "leave", "top_k": 3}, step="round1/call1"
)
CAME = run_event(
    "tool_result", 3, call_id="r1/a", ok=True, summary="2 passages of handbook.pdf", duration_ms=1500.0, error=None
)
ASKED = {"approval_id": "ap1", "tool": "send_email", "arguments_hash": "ab12", "expires_at": "2026-01-01T01:00:00.000Z"}
MAIL = {"to": "ann@example.org", "text": "Hello\n\x1b[2JAnn"}


def approval(seq: int, decision: str = "pending", **more: Any) -> bytes:
    return run_event("approval", seq, **{**ASKED, "arguments": MAIL, "decision": decision, "decided_by": "", **more})


def parked(seq: int) -> bytes:
    return run_event("parked", seq, waits_for="approval", approval_ids=["ap1"], until=ASKED["expires_at"])


def finished(seq: int, text: str = "Done. [1]", status: str = "completed") -> tuple[bytes, ...]:
    usage = {
        "seconds": 2.5,
        "prompt_tokens": 1200,
        "completion_tokens": 56,
        "cost_usd": 0.002,
        "tool_calls": 2,
        "model": "qwen",
    }
    return (
        run_event("answer", seq, text=text, citations=[], support_status=None, method="model"),
        run_event("usage", seq + 1, **usage),
        run_event("done", seq + 2, status=status),
    )


def pending(**more: Any) -> dict[str, Any]:
    listed = {key: value for key, value in ASKED.items() if key != "approval_id"}
    return {"id": "ap1", "run_id": "r1", "arguments": MAIL, **listed, **more}


def wait_for_a_person(server: FakeServer) -> None:
    """The server's run asks for an approval, and goes on once there is a decision."""
    decided: list[str] = []

    def decide(http: Handler) -> None:
        decided.append(json.loads(http.body)["decision"])
        http.json(pending())

    def rest(http: Handler) -> None:
        after = int(http.path.rpartition("=")[2])
        word = {"allow": "allowed", "deny": "denied"}.get(decided[0] if decided else "", "")
        events = [STARTED, CALL, CAME, approval(4), parked(5), approval(6, word, decided_by="ann"), *finished(7)]
        http.stream(*(events if word else events[:5])[after:])

    server.on("POST", "/v1/chat", lambda http: http.stream(STARTED, CALL, CAME, approval(4), parked(5)))
    server.on("GET", "/v1/runs/r1/events", rest)
    server.on("POST", "/v1/approvals/ap1", decide)
    server.on("GET", "/v1/approvals", lambda http: http.json({"approvals": [] if decided else [pending()]}))
