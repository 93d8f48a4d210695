"""The table of a document's life: each arrow, and that nothing moves where there is none."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from services.ingest.documents import life
from services.ingest.documents.life import LIFE, TOMBSTONE_LIFE, Move
from services.ingest.documents.models import (
    Content,
    Document,
    Failure,
    IngestJob,
    Report,
    Revision,
    Status,
    StoredDocument,
    Tries,
)
from services.ingest.errors import IllegalMove, WrittenByNewerVersion

NOW = datetime(2026, 5, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
OLD, NEW = Content("ab" * 32, 3, "text/plain"), Content("cd" * 32, 4, "text/plain")
ACTIVE, PENDING = Revision("r1", 1, OLD), Revision("r2", 2, NEW)
FAILURE = Failure("PDF_BROKEN", "broken")


def document(status: Status) -> Document:
    """One of a second revision, with the first still searchable, as far as its status allows."""
    on_its_way = status in (Status.QUEUED, Status.PROCESSING)
    made = life.create("local", "aa" * 16, "default", "a.txt", NEW, {"team": "blue"}, "r1", NOW)
    return replace(
        made,
        status=status,
        revision_count=2,
        pending=PENDING if on_its_way else None,
        active=None if status is Status.FAILED else ACTIVE,
        tries=Tries(failures=1) if on_its_way else Tries(),
        newer_fields={"colour": "red", **({"status": "archived"} if status is Status.UNKNOWN else {})},
    )


@dataclass
class Case:
    """What is done, and what it makes of a document beside its status."""

    move: Move
    make: Callable[[Document], Document]
    changes: dict[str, object]


CASES = [
    Case(
        Move.REVISE,
        lambda it: life.revise(it, OLD, "r8", LATER, above=7, metadata={"team": "red"}),
        {
            "content": OLD,
            "pending": Revision("r8", 8, OLD, queued_at=LATER),
            "revision_count": 8,
            "metadata": {"team": "red"},
            "tries": Tries(),
        },
    ),
    Case(
        Move.BEGIN,
        lambda it: life.begin(it, LATER, Report(attempts=2), Tries(worker_id="w")),
        {"pending": PENDING, "stage": "parse", "report": Report(attempts=2), "tries": Tries(worker_id="w")},
    ),
    Case(
        Move.ADVANCE,
        lambda it: life.advance(it, LATER, "embed", 0.5),
        {"pending": PENDING, "stage": "embed", "progress": 0.5, "tries": Tries(failures=1)},
    ),
    Case(
        Move.HAND_BACK,
        lambda it: life.hand_back(it, LATER, "embed", Tries(failures=2)),
        {"pending": PENDING, "stage": "embed", "progress": 0.0, "tries": Tries(failures=2)},
    ),
    Case(
        Move.FINISH,
        lambda it: life.finish(it, LATER, Report(chunk_count=3)),
        {"pending": None, "active": PENDING, "progress": 1.0, "report": Report(chunk_count=3), "tries": Tries()},
    ),
    Case(
        Move.FAIL,
        lambda it: life.fail(it, LATER, FAILURE),
        {"pending": None, "active": ACTIVE, "content": OLD, "error": FAILURE, "tries": Tries()},
    ),
    Case(
        Move.FAIL,
        lambda it: life.fail(replace(it, active=None), LATER, FAILURE),
        {"pending": None, "active": None, "content": NEW, "error": FAILURE, "tries": Tries()},
    ),
    Case(Move.DELETE, lambda it: life.delete(it, LATER), {"swept": False, "stage": "", "error": None}),
    Case(Move.SWEEP, life.sweep, {"swept": True, "updated_at": NOW}),
]


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.move)
def test_document_moves_along_its_arrows_and_nowhere_else(case: Case, status: Status) -> None:
    before, arrow = document(status), LIFE[case.move]
    if status in arrow.origins:
        after = case.make(before)
        assert after.status in arrow.targets
        expected = {"updated_at": LATER} | case.changes
        assert {name: getattr(after, name) for name in expected} == expected
        assert after.newer_fields == {"colour": "red"}
    else:
        with pytest.raises(WrittenByNewerVersion if status is Status.UNKNOWN else IllegalMove):
            case.make(before)


def test_every_arrow_between_records_has_a_case_and_every_target_is_reached() -> None:
    between_records = {move for move, arrow in LIFE.items() if None not in arrow.origins | arrow.targets}
    assert {case.move for case in CASES} == between_records
    for move in between_records:
        reached = {
            case.make(document(status)).status
            for case in CASES
            if case.move is move
            for status in LIFE[move].origins
            if status is not None
        }
        assert reached == LIFE[move].targets, move


def test_new_document_waits_for_its_first_revision() -> None:
    made = life.create("local", "aa" * 16, "default", "a.txt", NEW, {"team": "blue"}, "r1", NOW)
    assert {made.status} == LIFE[Move.CREATE].targets
    assert (made.pending, made.active, made.revision_count) == (Revision("r1", 1, NEW, queued_at=NOW), None, 1)
    assert life.job_of(made) == IngestJob("local", "aa" * 16, "r1")


def test_kept_file_has_no_revision_and_no_job() -> None:
    kept = life.keep(life.create("local", "aa" * 16, "files", "a.txt", NEW, {}, "r1", NOW))
    assert {kept.status} == LIFE[Move.KEEP].targets
    assert (kept.pending, kept.active, kept.revision_count) == (None, None, 0)


def test_voided_id_is_a_tombstone_with_nothing_to_remove() -> None:
    void = life.void(life.create("local", "aa" * 16, "default", "a.txt", NEW, {}, "r1", NOW))
    assert {void.status} == LIFE[Move.VOID].targets
    assert (void.pending, void.swept, void.name) == (None, True, "a.txt")


@pytest.mark.parametrize("status", Status)
def test_only_a_swept_tombstone_is_forgotten_and_only_when_nothing_can_refer_to_it(status: Status) -> None:
    swept = replace(document(status), swept=True)
    assert life.may_be_forgotten(swept, NOW + 2 * TOMBSTONE_LIFE) is (status in LIFE[Move.FORGET].origins)
    assert not life.may_be_forgotten(swept, NOW + TOMBSTONE_LIFE)
    assert not life.may_be_forgotten(replace(swept, swept=False), NOW + 2 * TOMBSTONE_LIFE)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.UNKNOWN])
def test_job_is_current_while_its_revision_is_the_pending_one(status: Status) -> None:
    stored = StoredDocument(document(status), 1)
    on_its_way = status in (Status.QUEUED, Status.PROCESSING)
    assert life.is_current(stored, IngestJob("local", "aa" * 16, "r2")) is on_its_way
    assert not life.is_current(stored, IngestJob("local", "aa" * 16, "r1"))
    assert not life.is_current(None, IngestJob("local", "aa" * 16, "r2"))


def test_whether_the_job_of_a_newer_versions_document_is_current_is_not_guessed() -> None:
    with pytest.raises(WrittenByNewerVersion, match=r"a.txt is in the state 'archived'"):
        life.is_current(StoredDocument(document(Status.UNKNOWN), 1), IngestJob("local", "aa" * 16, "r2"))
