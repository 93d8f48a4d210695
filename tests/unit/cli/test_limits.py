"""`groundwork limits`."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import FakeServer
from tests.unit.cli.test_commands import Command

TOKENS = {"what": "tokens", "amount": 200_000.0, "per": "hour"}
RULE = {"whose": "subject:*", "tenant_id": "acme", "limits": [TOKENS]}


def test_limits_are_shown_with_what_is_used(server: FakeServer, groundwork: Command) -> None:
    state = {"whose": "subject", "limit": TOKENS, "used": 1500.0, "free_at": "2026-01-31T14:00:00Z"}
    server.on("GET", "/v1/limits", lambda http: http.json({"limits": [state, {**state, "whose": "all", "used": None}]}))
    shown = groundwork("limits").stdout.splitlines()
    assert "200,000 tokens an hour" in shown[1]
    assert "1,500" in shown[1]
    stored = {
        "whose": "tenant",
        "limit": {"what": "storage", "amount": 1e10, "per": "ever"},
        "used": 5.0,
        "free_at": None,
    }
    server.on("GET", "/v1/limits", lambda http: http.json({"limits": [stored]}))
    assert "10,000,000,000 bytes stored in all" in groundwork("limits").stdout
    server.on("GET", "/v1/limits", lambda http: http.json({"limits": []}))
    assert groundwork("limits").stdout == "Nothing limits what you use.\n"
    server.on("GET", "/v1/limits", lambda http: http.json({"limits": [], "missing": ["ingest"]}))
    away = "Limits of stored bytes and documents are not known now: the service ingest does not answer.\n"
    assert groundwork("limits").stdout == away


def test_rules_are_listed_set_and_removed(server: FakeServer, groundwork: Command) -> None:
    sent: list[object] = []
    server.on("GET", "/v1/limits/rules", lambda http: http.json({"rules": [RULE]}))
    server.on(
        "PUT", "/v1/limits/rules/subject%3A%2A", lambda http: (sent.append(json.loads(http.body)), http.json(RULE))
    )
    assert "subject:*" in groundwork("limits", "rules").stdout
    assert groundwork("limits", "set", "subject:*", "tokens=200000/hour").exit_code == 0
    assert groundwork("limits", "remove", "subject:*").exit_code == 0
    assert sent == [{"limits": [TOKENS]}, {"limits": []}]


def test_storage_is_limited_in_all_and_in_units(server: FakeServer, groundwork: Command) -> None:
    sent: list[object] = []
    server.on("PUT", "/v1/limits/rules/all", lambda http: (sent.append(json.loads(http.body)), http.json(RULE)))
    assert (
        groundwork("limits", "set", "all", "storage=1.5GiB", "stored_documents=1000", "tokens=200000/hour").exit_code
        == 0
    )
    storage = {"what": "storage", "amount": 1.5 * 2**30, "per": "ever"}
    assert sent == [{"limits": [storage, {"what": "stored_documents", "amount": 1000.0, "per": "ever"}, TOKENS]}]


def test_name_of_a_group_keeps_its_slashes(server: FakeServer, groundwork: Command) -> None:
    server.on("PUT", "/v1/limits/rules/group%3A/staff/EMEA%20West", lambda http: http.json(RULE))
    assert groundwork("limits", "set", "group:/staff/EMEA West", "tool_calls=50/day").exit_code == 0


def test_limit_that_says_nothing_is_refused(server: FakeServer, groundwork: Command) -> None:
    result = groundwork("limits", "set", "subject:*", "tokens=many")
    assert result.exit_code == 2
    assert "tokens=200000/hour" in result.stderr


def test_credits_are_granted_beside_what_is_granted_and_limited_already(
    server: FakeServer, groundwork: Command
) -> None:
    sent: list[object] = []
    granted = {"what": "credits", "amount": 50.0, "per": "ever"}
    rules = [{**RULE, "limits": [TOKENS, granted]}, {"whose": "subject:ann", "tenant_id": "other", "limits": []}]
    server.on("GET", "/v1/me", lambda http: http.json({"tenant": "acme"}))
    server.on("GET", "/v1/limits/rules", lambda http: http.json({"rules": rules}))
    server.on(
        "PUT", "/v1/limits/rules/subject%3Aann", lambda http: (sent.append(json.loads(http.body)), http.json(RULE))
    )
    assert groundwork("limits", "grant", "subject:ann", "100").exit_code == 0
    assert groundwork("limits", "set", "subject:ann", "credits=5").exit_code == 0
    assert sent == [{"limits": [TOKENS, {**granted, "amount": 150.0}]}, {"limits": [{**granted, "amount": 5.0}]}]
    state = {"whose": "subject", "limit": granted, "used": 7.0, "free_at": None}
    server.on("GET", "/v1/limits", lambda http: http.json({"limits": [state]}))
    assert "50 credits in all" in groundwork("limits").stdout
