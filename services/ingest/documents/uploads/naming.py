"""Names from outside. A document's name may hold folders, but it is a display string and nothing else: it is never opened as
a path, nor is it a key or a subject. Ids become keys and subjects, so their alphabet is small."""

import re
import unicodedata

from kit.stores.collections import DEFAULT_ID
from services.ingest.errors import BadName, BadUpload, DocumentNotFound
from services.ingest.reading.decoding import codec_of_texts

MAX_NAME_CHARS = 255
_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_DEFAULT_ID = re.compile(rf"{DEFAULT_ID}(-[0-9a-f]{{8}})?")
_DOCUMENT_ID = re.compile(r"[0-9a-f]{8,64}")
_MAX_METADATA_FIELDS = 32
_MAX_METADATA_CHARS = 512
# Invisible or reordering characters let "exe.fdp" pass for "pdf.exe" on a screen: Cc, Cf, Cs, Co, Cn, line separators.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Joiners inside words of Persian, Indic scripts and emoji: format characters that belong to the spelling.
_JOINERS = {"\u200c", "\u200d"}
_DRIVE = re.compile(r"^[A-Za-z]:")


def file_name(raw: str) -> str:
    """`raw` in NFC, with its folders where they are a clean relative path and without them otherwise. Raises BadName, saying what
    is wrong with it."""
    *folders, last = re.split(r"[/\\]", raw)
    last = last.strip()
    if not last or _only_dots(last):
        raise BadName("the upload has no file name; give it one, for example report.pdf")
    name = unicodedata.normalize("NFC", "/".join([*folders, last]) if _is_clean(raw, folders) else last)
    if len(name) > MAX_NAME_CHARS:
        raise BadName(
            f"the file name has {len(name)} characters with its folders; shorten it to at most {MAX_NAME_CHARS}"
        )
    bad = next((c for c in name if unicodedata.category(c) in _UNPRINTABLE and c not in _JOINERS), None)
    if bad is not None:
        raise BadName(f"the file name contains the invisible character U+{ord(bad):04X}; rename the file without it")
    return name


def _is_clean(raw: str, folders: list[str]) -> bool:
    """Whether the folders say where the file belongs, and not how somebody's disk is laid out or how to leave a folder."""
    return "\\" not in raw and not _DRIVE.match(raw) and not any(_only_dots(folder) for folder in folders)


def _only_dots(segment: str) -> bool:
    """Also true for an empty one: "/etc/x" and "a//b" hold such."""
    return set(segment) <= {".", " "}


def collection_id(raw: str) -> str:
    """`raw` if it can be a collection id. Raises BadName."""
    if not _IDENTIFIER.fullmatch(raw):
        raise BadName(
            f"{raw[:80]!r} cannot be a collection id; use 1 to 64 of a-z, 0-9, '-' and '_', beginning with a letter or digit"
        )
    return raw


def is_default(collection_id: str) -> bool:
    """Whether it is a collection that is there without having been made: everybody's default one, with a mark or without."""
    return bool(_DEFAULT_ID.fullmatch(collection_id))


def marked_id(collection_id: str, mark: str) -> str:
    """An id that is free, since the mark is random."""
    return f"{collection_id[: 63 - len(mark)]}-{mark}"


def collection_id_from(name: str) -> str:
    """An id made from a name for people: "Annual Reports 2024" becomes "annual-reports-2024". Empty where the name has no letter or
    digit of ASCII."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9_]+", "-", plain).strip("-_")[:64]


def is_document_id(raw: str) -> bool:
    """Whether `raw` can be a document id at all: anything else must not reach a key."""
    return bool(_DOCUMENT_ID.fullmatch(raw))


def check_document_id(raw: str) -> None:
    """Raises DocumentNotFound for what cannot be a document id."""
    if not is_document_id(raw):
        raise DocumentNotFound(f"there is no document {raw[:80]}; its id would be 8 to 64 of 0-9 and a-f")


def checked_metadata(fields: dict[str, str]) -> dict[str, str]:
    """`fields` if they are few and short enough to be stored with every chunk. Raises BadUpload."""
    if len(fields) > _MAX_METADATA_FIELDS:
        raise BadUpload(f"the upload has {len(fields)} metadata fields; send at most {_MAX_METADATA_FIELDS}")
    for key, value in fields.items():
        if not key or len(key) > 64 or len(value) > _MAX_METADATA_CHARS:
            raise BadUpload(
                f"metadata field {key[:64]!r} is too long; keys have 1 to 64 characters, values at most {_MAX_METADATA_CHARS}"
            )
    return dict(fields)


def checked_encoding(raw: str) -> str:
    """The name of the codec for what an uploader says is a file's encoding; empty for none. Raises BadUpload."""
    try:
        return codec_of_texts(raw) if raw else ""
    except LookupError as error:
        raise BadUpload(
            f"the encoding {raw[:40]!r} is not known; name one as iso-8859-2, windows-1250, koi8-r or utf-16, or leave it out"
        ) from error
