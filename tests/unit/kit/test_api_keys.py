"""API keys: their text, their record, and when one is good."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kit.access.api_keys import (
    ApiKey,
    ApiKeyExpired,
    ApiKeyInvalid,
    ApiKeyMalformed,
    ApiKeyRevoked,
    decode,
    encode,
    new_key,
    new_text,
    read_shown,
    require_good,
    stricter_guard,
)
from kit.access.principal import ADMIN, QUERY, Principal
from kit.errors import GroundworkError, Unauthenticated
from kit.records import UNREADABLE

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def made(**changes: Any) -> tuple[ApiKey, str]:
    fields: dict[str, Any] = {
        "name": "Laptop",
        "tenant_id": "acme",
        "subject": "anna",
        "scopes": (QUERY,),
        "created_at": NOW,
        "created_by": "olga",
    }
    key, text = new_key(**(fields | changes))
    return key, text.get_secret_value()


def refusal(key: ApiKey | None, text: str, now: datetime = NOW) -> str:
    """The reason for which a text is refused; empty when it is taken."""
    try:
        require_good(key, read_shown(text), now)
    except Unauthenticated as error:
        return error.reason
    return ""


def test_a_key_names_its_record_and_is_one_word_of_77_characters() -> None:
    key, text = made()
    assert re.fullmatch(rf"gw_{key.key_id}_[0-9A-Za-z]{{49}}", text)
    assert len(text) == 77
    assert read_shown(text).key_id == key.key_id
    assert key.principal == Principal("acme", "anna", frozenset({QUERY}), key_id=key.key_id)
    texts = {new_text(key.key_id).get_secret_value() for _ in range(100)}
    assert len({each[-49:-6] for each in texts}) == 100


def test_a_mistyped_or_cut_off_key_is_told_from_an_unknown_one() -> None:
    _, text = made()
    for wrong in (
        text[:-1],
        text + "a",
        text.upper(),
        f" {text}",
        f"{text}\n",
        text.replace("gw_", "sk_"),
        "",
        "é" * 77,
        *(text[:at] + ("1" if text[at] == "0" else "0") + text[at + 1 :] for at in range(3, 77)),
    ):
        with pytest.raises(ApiKeyMalformed):
            read_shown(wrong)
    assert refusal(None, text) == ApiKeyInvalid.reason


def test_the_record_keeps_no_text_and_nothing_that_prints_it_shows_its_hash() -> None:
    key, text = made()
    stored = encode(key).decode()
    secret = text.rpartition("_")[2]
    assert secret not in stored
    for shown in (repr(key), repr(read_shown(text)), str(new_text(key.key_id))):
        assert secret not in shown
        assert key.digest.hex() not in shown
        assert repr(key.digest) not in shown


def test_a_key_is_good_until_it_is_revoked_or_expires() -> None:
    key, text = made(expires_at=NOW + HOUR)
    assert refusal(key, text) == ""
    assert refusal(key, text, NOW + HOUR) == ApiKeyExpired.reason
    assert refusal(key.revoked(NOW), text) == ApiKeyRevoked.reason
    assert key.revoked(NOW).revoked(NOW + HOUR).revoked_at == NOW
    assert [each.status(at) for each, at in ((key, NOW), (key, NOW + HOUR), (key.revoked(NOW), NOW))] == [
        "active",
        "expired",
        "revoked",
    ]


def test_who_does_not_show_the_right_text_is_not_told_of_a_revoked_or_expired_key() -> None:
    key, _ = made(expires_at=NOW + HOUR)
    guess = new_text(key.key_id).get_secret_value()
    for each in (key, key.revoked(NOW), replace(key, expires_at=NOW), None):
        assert refusal(each, guess) == ApiKeyInvalid.reason


def test_after_a_rotation_both_texts_are_good_until_the_old_one_ends() -> None:
    key, old = made()
    text = new_text(key.key_id)
    rotated = key.rotated(text, NOW, 3600)
    new = text.get_secret_value()
    assert [refusal(rotated, each) for each in (old, new)] == ["", ""]
    assert [refusal(rotated, each, NOW + HOUR) for each in (old, new)] == [ApiKeyExpired.reason, ""]
    assert refusal(rotated.revoked(NOW), old) == ApiKeyRevoked.reason
    at_once = key.rotated(text, NOW, 0)
    assert [refusal(at_once, each) for each in (old, new)] == [ApiKeyInvalid.reason, ""]
    newest = new_text(key.key_id)
    twice = rotated.rotated(newest, NOW, 3600)
    assert [refusal(twice, each) for each in (old, new, newest.get_secret_value())] == [ApiKeyInvalid.reason, "", ""]


def test_key_with_a_guard_is_of_a_version_that_older_readers_do_not_take() -> None:
    plain, _ = made()
    guarded = replace(plain, guard="block")
    assert [json.loads(encode(each))["version"] for each in (plain, guarded)] == [1, 2]
    assert decode(encode(guarded)) == guarded
    assert decode(encode(guarded)).principal.guard == "block"


def test_mode_of_memory_restricts_nothing_and_older_readers_take_the_key() -> None:
    key = replace(made()[0], memory="off")
    assert json.loads(encode(key))["version"] == 1
    assert decode(encode(key)) == key
    assert key.principal.memory == "off"


def test_strictest_guard_holds() -> None:
    assert [stricter_guard(*each) for each in (("", ""), ("", "flag"), ("block", "flag"))] == ["", "flag", "block"]


def test_a_record_is_read_as_it_was_written_with_what_a_newer_version_added() -> None:
    key, _ = made(scopes=(ADMIN, "newer-scope"), expires_at=NOW + HOUR, created_with="ab")
    full = key.rotated(new_text(key.key_id), NOW, 60).revoked(NOW)
    assert decode(encode(full)) == full
    newer = json.dumps({**json.loads(encode(full)), "quota": {"day": 5}}).encode()
    assert json.loads(encode(decode(newer).revoked(NOW)))["quota"] == {"day": 5}
    assert decode(newer).newer_fields == {"quota": {"day": 5}}


@pytest.mark.parametrize(
    "change",
    [
        {"version": 3},
        {"version": None},
        {"sha256": "ab"},
        {"sha256": None},
        {"tenant_id": "*"},
        {"subject": ""},
        {"scopes": None},
        {"scopes": [1]},
        {"expires_at": "tomorrow"},
        {"expires_at": "2026-05-01T00:00:00"},
        {"previous_sha256": "zz"},
    ],
)
def test_a_record_that_cannot_be_trusted_is_none(change: dict[str, Any]) -> None:
    fields = {**json.loads(encode(made()[0])), **change}
    with pytest.raises((*UNREADABLE, GroundworkError)):
        decode(json.dumps(fields).encode())
