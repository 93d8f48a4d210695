"""Records as JSON, the form in which they are stored. Unknown fields are ignored, so that an older process reads a newer record."""

import json
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from services.ingest.models import (
    Collection,
    Content,
    DeadLetter,
    Document,
    Failure,
    IngestJob,
    Report,
    Revision,
    Status,
    Tries,
)

# Statuses of pages are stored as one letter each: a report on a thousand pages stays a kilobyte.
_PAGE_LETTERS = {"text": "t", "ocr": "o", "empty": "e", "failed": "f"}
_PAGE_WORDS = {letter: word for word, letter in _PAGE_LETTERS.items()}


def encode_document(document: Document) -> bytes:
    return json.dumps(document, ensure_ascii=False, default=_fields).encode()


def _fields(value: object) -> object:
    """What JSON does not know, as it is stored. A tenth of what `asdict` takes, which copies everything deeply."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Report):
        return vars(value) | {"page_statuses": "".join(_PAGE_LETTERS[status] for status in value.page_statuses)}
    return vars(value)


def decode_document(data: bytes) -> Document:
    value = _known(Document, json.loads(data))
    return Document(
        **{
            **value,
            "created_at": datetime.fromisoformat(value["created_at"]),
            "updated_at": datetime.fromisoformat(value["updated_at"]),
            "status": Status(value["status"]),
            "content": Content(**value["content"]),
            "pending": _revision(value["pending"]),
            "active": _revision(value["active"]),
            "error": Failure(**value["error"]) if value["error"] else None,
            "report": _report(value["report"]),
            "tries": _tries(value.get("tries")),
        }
    )


def _revision(value: dict[str, Any] | None) -> Revision | None:
    return Revision(value["revision_id"], value["number"], Content(**value["content"])) if value else None


def _tries(value: dict[str, Any] | None) -> Tries:
    if not value:
        return Tries()
    known = _known(Tries, value)
    failure = known["last_failure"]
    return Tries(
        **{
            **known,
            "last_failure": Failure(**failure) if failure else None,
            "first_failed_at": _moment(known["first_failed_at"]),
            "last_failed_at": _moment(known["last_failed_at"]),
        }
    )


def _report(value: dict[str, Any] | None) -> Report | None:
    if not value:
        return None
    known = _known(Report, value)
    return Report(
        **{
            **known,
            "page_statuses": tuple(_PAGE_WORDS[letter] for letter in known["page_statuses"]),
            "warnings": tuple(known["warnings"]),
            "languages": tuple(known.get("languages", ())),
        }
    )


def encode_collection(collection: Collection) -> bytes:
    created = collection.created_at.isoformat() if collection.created_at else None
    return json.dumps({**asdict(collection), "created_at": created}, ensure_ascii=False).encode()


def decode_collection(data: bytes) -> Collection:
    value = _known(Collection, json.loads(data))
    created = value["created_at"]
    return Collection(**{**value, "created_at": datetime.fromisoformat(created) if created else None})


def encode_dead_letter(letter: DeadLetter) -> bytes:
    return json.dumps(letter, ensure_ascii=False, default=_fields).encode()


def decode_dead_letter(data: bytes) -> DeadLetter:
    value = _known(DeadLetter, json.loads(data))
    moments = {name: _moment(value[name]) for name in ("first_failed_at", "last_failed_at", "requeued_at")}
    return DeadLetter(**{**value, **moments, "failure": Failure(**value["failure"])})


def encode_job(job: IngestJob) -> bytes:
    return json.dumps(asdict(job)).encode()


def decode_job(data: bytes) -> IngestJob:
    return IngestJob(**_known(IngestJob, json.loads(data)))


def _known(kind: type, value: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: field for name, field in value.items() if name in names}


def _moment(value: str | None) -> datetime | None:
    return datetime.fromisoformat(value) if value else None
