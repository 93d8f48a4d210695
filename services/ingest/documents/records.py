"""Records as JSON, the form in which they are stored.

A newer version's record is read by an older process, and loses nothing when that one writes it back: fields of a document,
collection or dead letter that are unknown here are carried, and a status that is unknown here stays what it was.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from kit.stores.collections import decode_members
from services.ingest.documents.models import (
    Collection,
    Content,
    DeadLetter,
    Document,
    Failure,
    IngestJob,
    Lane,
    Origin,
    PastRevision,
    Report,
    Revision,
    Status,
    Tries,
)

# Statuses of pages are stored as one letter each: a report on a thousand pages stays a kilobyte. A letter that is unknown here is a
# word of its own.
_PAGE_LETTERS = {"text": "t", "ocr": "o", "empty": "e", "failed": "f"}
_PAGE_WORDS = {letter: word for word, letter in _PAGE_LETTERS.items()}

_CHECKS: Mapping[Any, Callable[[Any], bool]] = {
    str: lambda value: isinstance(value, str),
    int: lambda value: isinstance(value, int),
    bool: lambda value: isinstance(value, bool),
    float: lambda value: isinstance(value, int | float),
    dict[str, str]: lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
}

RecordT = TypeVar("RecordT")


class Unreadable(ValueError):
    """The bytes are no record."""


def encode_document(document: Document) -> bytes:
    return _encode(document)


def encode_collection(collection: Collection) -> bytes:
    return _encode(collection)


def encode_dead_letter(letter: DeadLetter) -> bytes:
    return _encode(letter)


def encode_job(job: IngestJob) -> bytes:
    return _encode(job)


def _encode(record: object) -> bytes:
    return json.dumps(record, ensure_ascii=False, default=_fields).encode()


def _fields(value: object) -> object:
    """What JSON does not know, as it is stored. A tenth of what `asdict` takes, which copies everything deeply."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Report):
        letters = [_PAGE_LETTERS.get(status, status) for status in value.page_statuses]
        return vars(value) | {"page_statuses": "".join(letters)}
    if isinstance(value, Document | Collection | DeadLetter):
        known = {name: field for name, field in vars(value).items() if name != "newer_fields"}
        return known | dict(value.newer_fields)
    return vars(value)


def decode_document(data: bytes) -> Document:
    """Raises Unreadable."""
    with _readable():
        value = json.loads(data)
        known, newer = _split(Document, value)
        status = _status(value["status"])
        if status is Status.UNKNOWN:
            newer["status"] = value["status"]
        decoded = {
            "created_at": _time(value["created_at"]),
            "updated_at": _time(value["updated_at"]),
            "status": status,
            "content": _content(value["content"]),
            "pending": _revision(value["pending"]),
            "active": _revision(value["active"]),
            "error": _plain(Failure, value["error"]) if value["error"] else None,
            "report": _report(value["report"]),
            "tries": _tries(value.get("tries")),
            "history": tuple(_past(each) for each in value.get("history", ())),
            "counted_for": tuple(str(each) for each in value.get("counted_for", ())),
            "origin": _plain(Origin, value["origin"]) if value.get("origin") else None,
            "newer_fields": newer,
        }
        return _of_right_types(Document(**{**known, **decoded}))


def _status(word: str) -> Status:
    try:
        return Status(word)
    except ValueError:
        return Status.UNKNOWN


def _content(value: dict[str, Any]) -> Content:
    return _plain(Content, value)


def _revision(value: dict[str, Any] | None) -> Revision | None:
    if not value:
        return None
    queued_at = _moment(value.get("queued_at"))
    content = _content(value["content"])
    return Revision(value["revision_id"], value["number"], content, _lane(value), value.get("by", ""), queued_at)


def _past(value: dict[str, Any]) -> PastRevision:
    known, _ = _split(PastRevision, value)
    revision = _revision(known["revision"])
    if revision is None:
        raise ValueError("a revision of the history is empty")
    error = _plain(Failure, known["error"]) if known.get("error") else None
    return PastRevision(**{**known, "revision": revision, "ended_at": _moment(known.get("ended_at")), "error": error})


def _lane(value: Mapping[str, Any]) -> Lane:
    """A lane that only a newer version knows is read as the ordinary one: it decides the order and nothing else."""
    return Lane.BULK if value.get("lane") == Lane.BULK else Lane.INTERACTIVE


def _tries(value: dict[str, Any] | None) -> Tries:
    if not value:
        return Tries()
    known, _ = _split(Tries, value)
    failure = known["last_failure"]
    moments = {name: _moment(known[name]) for name in ("first_failed_at", "last_failed_at")}
    return Tries(**{**known, **moments, "last_failure": _plain(Failure, failure) if failure else None})


def _report(value: dict[str, Any] | None) -> Report | None:
    if not value:
        return None
    known, _ = _split(Report, value)
    statuses = tuple(_PAGE_WORDS.get(letter, letter) for letter in known["page_statuses"])
    lists = {name: tuple(known.get(name, ())) for name in ("warnings", "languages")}
    return Report(**{**known, **lists, "page_statuses": statuses})


def decode_collection(data: bytes) -> Collection:
    """Raises Unreadable."""
    with _readable():
        known, newer = _split(Collection, json.loads(data))
        created_at = _moment(known["created_at"])
        decoded = {"created_at": created_at, "members": decode_members(known.get("members", ()))}
        return _of_right_types(Collection(**{**known, **decoded, "newer_fields": newer}))


def decode_dead_letter(data: bytes) -> DeadLetter:
    """Raises Unreadable."""
    with _readable():
        known, newer = _split(DeadLetter, json.loads(data))
        moments = {name: _moment(known[name]) for name in ("first_failed_at", "last_failed_at", "requeued_at")}
        failure = _plain(Failure, known["failure"])
        return _of_right_types(DeadLetter(**{**known, **moments, "failure": failure, "newer_fields": newer}))


def decode_job(data: bytes) -> IngestJob:
    """Raises Unreadable."""
    with _readable():
        value = json.loads(data)
        return _of_right_types(_plain(IngestJob, {**value, "lane": _lane(value)}))


@contextmanager
def _readable() -> Iterator[None]:
    """Raises Unreadable for whatever bytes that are no record can lead to."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}"[:200]) from error


def _plain(kind: type[RecordT], value: Mapping[str, Any]) -> RecordT:
    """A record of fields that JSON knows."""
    return kind(**_split(kind, value)[0])


def _split(kind: type, value: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that a kind of record has here, and those that only a newer version knows."""
    names = _names(kind)
    known = {name: field for name, field in value.items() if name in names}
    if len(known) == len(value):
        return known, {}
    return known, {name: field for name, field in value.items() if name not in names}


@cache
def _names(kind: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind)) - {"newer_fields"}


def _of_right_types(record: RecordT) -> RecordT:
    """Raises TypeError where a plain field holds something else than it should."""
    kind: type = type(record)
    for name, is_right in _checks(kind):
        if not is_right(getattr(record, name)):
            raise TypeError(f"{name} is {type(getattr(record, name)).__name__}")
    return record


@cache
def _checks(kind: type) -> tuple[tuple[str, Callable[[Any], bool]], ...]:
    return tuple((field.name, _CHECKS[field.type]) for field in fields(kind) if field.type in _CHECKS)


def _moment(value: str | None) -> datetime | None:
    return _time(value) if value else None


def _time(value: str) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError(f"{value} is a time without its zone")
    return moment
