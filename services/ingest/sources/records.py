"""Records of sources as JSON. Fields of a newer version are carried, as those of documents are."""

import json
from dataclasses import fields

from pydantic import TypeAdapter

from services.ingest.documents.records import Unreadable
from services.ingest.sources.models import SourceRecord

_ADAPTER = TypeAdapter(SourceRecord)
_NAMES = frozenset(each.name for each in fields(SourceRecord)) - {"newer_fields"}


def encode_source(record: SourceRecord) -> bytes:
    known = _ADAPTER.dump_python(record, mode="json")
    return json.dumps(known.pop("newer_fields") | known, ensure_ascii=False).encode()


def decode_source(data: bytes) -> SourceRecord:
    """Raises Unreadable."""
    try:
        value = json.loads(data)
        known = {name: value[name] for name in value.keys() & _NAMES}
        newer = {name: value[name] for name in value.keys() - _NAMES}
        return _ADAPTER.validate_python({**known, "newer_fields": newer})
    except (ValueError, AttributeError, RecursionError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}"[:200]) from error
