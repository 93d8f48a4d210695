"""Which requests the audit log notes: those that change nothing only within limits."""

from datetime import UTC, datetime

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from kit.access.principal import Principal
from kit.limits.rules import EACH, Limit, Per, Rules, What, Whose
from kit.limits.rules import Scope as Extent
from services.gateway.access.audit import AuditLog
from services.gateway.access.auth import Admission, Entrance
from services.gateway.serving.request_limits import RequestLimits
from tests.unit.orchestrator.limits.counting import AT, MemoryCounters


def admission(subject: str = "anna") -> Admission:
    return Admission(Principal("acme", subject), issuer="https://login.example.com")


def scope(who: Admission | None, *, reason: str = "") -> Scope:
    state = {"admission": who, "refusal": reason}
    return {"type": "http", "method": "POST", "path": "/v1/keys", "client": ("10.0.0.1", 5), "state": state}


def audit_log() -> AuditLog:
    return AuditLog(lambda: 0.0, lambda: datetime.now(UTC))


def test_refused_requests_of_one_caller_are_limited_and_counted() -> None:
    audit = audit_log()
    with capture_logs() as logs:
        for status in (401, 403, 404, 405, 422) * 5:
            audit.request(scope(admission()), status)
        audit.request(scope(admission("olga")), 403)
        audit.request(scope(admission()), 201)
    told = [(line["subject"], line["status"], line.get("left_out_before", 0)) for line in logs]
    assert len(told) == 22
    assert told[20:] == [("olga", 403, 5), ("anna", 201, 0)]


def test_requests_that_change_something_are_all_noted() -> None:
    audit = audit_log()
    with capture_logs() as logs:
        for status in (201, 499, 500) * 20:
            audit.request(scope(admission()), status)
    assert len(logs) == 60


def test_refusals_of_callers_with_a_key_leave_room_for_those_without() -> None:
    audit = audit_log()
    with capture_logs() as logs:
        for number in range(700):
            audit.request(scope(admission(f"user-{number}")), 403)
        audit.request(scope(None, reason="API_KEY_INVALID"), 401)
    assert len(logs) == 601
    assert "left_out_before" not in logs[-1]


class _Door:
    async def admit(self, headers: Headers, address: str) -> Admission:
        return admission()


async def test_request_over_a_limit_is_noted_of_its_caller() -> None:
    audit, rules = audit_log(), Rules()
    rules.set(Whose(Extent.SUBJECT, "acme", EACH), [Limit(What.REQUESTS, 1, Per.DAY)])
    limits = RequestLimits(lambda: AT, lambda: 0.0)
    limits.use(rules, MemoryCounters())

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        pass

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    statuses = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    entrance = Entrance(app, door=_Door(), requests=limits)
    for _ in range(2):
        asked = {**scope(None), "headers": [], "state": {}}
        await entrance(asked, receive, send)
    assert statuses == [429]
    with capture_logs() as logs:
        audit.request(asked, 429)
    assert [(line["action"], line["subject"], line["reason"]) for line in logs] == [
        ("request", "anna", "LIMIT_REACHED")
    ]
