"""Every kind of record that is stored or queued: how this version writes it, reads it and changes it.

`make_records` is what `scripts/record-release` writes into tests/data/released/<version>/, one file a kind.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial

from google.protobuf.message import Message
from groundwork.orchestrator.v1 import orchestrator_pb2, record_pb2, state_pb2
from groundwork.tools.v1 import record_pb2 as call_pb2
from pydantic import SecretStr

from kit.access import api_keys
from kit.jetstream import Entry, Job, condition
from kit.limits import store as limits
from kit.limits.rules import Limit, Per, What
from kit.llm import switching
from kit.llm.brought import BroughtModel
from kit.llm.providers import Choice
from kit.state import Store
from kit.stores import api_key_store, audit_chain, document_access, forgetting, idempotency
from kit.stores.document_access import DocumentAccess
from kit.testing.harness import TEST_PRINCIPAL
from services.gateway import state as gateway
from services.gateway.access.directory import records as directory
from services.gateway.access.guests import guests
from services.gateway.access.oidc import logouts, rotation, sessions
from services.ingest import state as ingest
from services.ingest.adapters.jetstream import stores as nats_stores
from services.ingest.documents import records as documents
from services.ingest.documents.models import (
    Collection,
    Content,
    DeadLetter,
    Document,
    Failure,
    IngestJob,
    Origin,
    PastRevision,
    Report,
    Revision,
    RevisionPhase,
    Status,
    Tries,
)
from services.ingest.sources import records as source_records
from services.ingest.sources.models import Counts, FailingFile, SourceRecord, SyncState
from services.memory import state as memory
from services.memory.adapters import deletions, facts
from services.memory.adapters import nats as threads
from services.memory.facts.models import Fact, FactKind, Plan, Profile
from services.memory.models import Deletion, Owner, Role, Thread
from services.memory.models import Message as ThreadMessage
from services.orchestrator import state as orchestrator
from services.orchestrator.adapters.codec import event_from_bytes, event_to_proto
from services.orchestrator.adapters.jetstream import (
    agent_switches,
    brought_models,
    markers,
    run_store,
    sources,
    tally,
)
from services.orchestrator.adapters.jetstream import records as runs
from services.orchestrator.adapters.services import facts as learning
from services.orchestrator.log.events import (
    Answer,
    Approval,
    Budgets,
    Citation,
    RunError,
    RunMode,
    RunStatus,
    SupportStatus,
    Usage,
)
from services.orchestrator.models import Dependent, Outcome, RunKey, RunMarker, RunRecord, RunRequest, Wait
from services.orchestrator.remembering.models import LearntTurn
from services.orchestrator.runs.tally import RunCost
from services.retriever import state as retriever
from services.retriever.adapters import collection_models, revisions
from services.retriever.model_change.collection_embedding import CollectionEmbedding, Stage
from services.retriever.model_change.evaluation import Comparison, Evaluation, Quality, Question
from services.retriever.models import Pointer
from services.tools import state as tools
from services.tools.adapters import call_store, connection_records
from services.tools.adapters.mcp import server_records
from services.tools.connections.records import Connection
from services.tools.models import ToolOutcome
from services.tools.ports import NotedCall
from services.tools.sources import remote_records
from services.tools.sources.logins import Login, WaitingLogin
from tests.contract.released.filling import filled

AT = datetime(2026, 11, 23, 12, 30, 15, 250_000, UTC)
KEY = RunKey("acme", "0193" + "a" * 28)
_AUDITED = {
    "at": "2026-11-23T12:30:15.250Z",
    "action": "request",
    "tenant_id": "acme",
    "subject": "ann",
    "key_id": "0f" * 12,
    "address": "192.0.2.7",
    "method": "DELETE",
    "route": "/v1/documents/{document_id}",
    "about": {"document_id": "d0000001"},
    "status": 204,
    "trace_id": "5b8aa5a2d2c872e8321cf37308d69df2",
}
_FACT = Fact(
    "f1" * 16,
    "I live in Ghent",
    FactKind.PROFILE,
    learnt_at=AT,
    valid_from=AT,
    valid_to=AT,
    confidence=0.8,
    run_id=KEY.run_id,
    thread_id="t1",
    said="I live in Ghent",
    slot="lives",
    answer="ghent",
    superseded_by="f2" * 16,
    learnt_by="model",
    edited_at=AT,
)


@dataclass(frozen=True)
class Kind:
    """One kind of record. JSON, unless `message` says of which message it is the bytes."""

    store: Store
    """Where it lies, as its service declares it."""
    write: Callable[[], bytes]
    """A record with everything in it, the same each time."""
    again: Callable[[bytes], bytes]
    """Read and written anew from what was read. Raises where it cannot be read."""
    change: Callable[[bytes], bytes] | None = None
    """A small change, as the service makes it to a stored record; None for records that are written once and never changed."""
    name: str = ""
    """Where a store has several kinds."""
    message: type[Message] | None = None
    is_text: bool = False
    """Plain text, without fields."""
    newer_words: dict[str, str] = field(default_factory=dict)
    """Values that a newer version may write into fields of a fixed vocabulary."""

    @property
    def file_name(self) -> str:
        ending = "txt" if self.is_text else "json" if self.message is None else "binpb"
        return ".".join(part for part in (self.store.name, self.name, ending) if part)


def kinds() -> Sequence[Kind]:
    """All of them."""
    return [*_gateway(), *_ingest(), *_retriever(), *_memory(), *_tools(), *_orchestrator(), *_events()]


def _gateway() -> Iterator[Kind]:
    yield Kind(
        gateway.API_KEYS,
        lambda: api_keys.encode(_KEY),
        lambda data: api_keys.encode(api_keys.decode(data)),
        change=lambda data: api_keys.encode(replace(api_keys.decode(data), revoked_at=AT)),
    )
    yield Kind(
        gateway.API_KEY_USES,
        lambda: api_key_store._encode_use(AT),
        lambda data: api_key_store._encode_use(api_key_store._decode_use(data)),
    )
    yield Kind(
        gateway.OIDC_LOGOUTS,
        lambda: logouts.encode(AT.timestamp()),
        lambda data: logouts.encode(logouts.decode(data)),
    )
    yield Kind(
        gateway.OIDC_SESSIONS,
        lambda: sessions.encode(_SESSION),
        lambda data: sessions.encode(sessions.decode(data)),
    )
    yield Kind(
        gateway.GUESTS,
        lambda: guests.encode(_GUEST),
        lambda data: guests.encode(guests.decode(data)),
    )
    yield Kind(
        gateway.DIRECTORY,
        lambda: directory.encode(_USER),
        lambda data: directory.encode(directory.decode_user(data)),
        change=lambda data: directory.encode(replace(directory.decode_user(data), is_active=False)),
        name="user",
    )
    yield Kind(
        gateway.DIRECTORY,
        lambda: directory.encode(_GROUP),
        lambda data: directory.encode(directory.decode_group(data)),
        change=lambda data: directory.encode(replace(directory.decode_group(data), member_ids=())),
        name="group",
    )
    yield Kind(
        gateway.AUDIT,
        lambda: audit_chain.canonical(audit_chain.sealed(_AUDITED, audit_chain.ChainLink())).encode(),
        lambda data: audit_chain.canonical(json.loads(data)).encode(),
    )


def _ingest() -> Iterator[Kind]:
    def document(data: bytes) -> bytes:
        return documents.encode_document(documents.decode_document(data))

    def collection(data: bytes) -> bytes:
        return documents.encode_collection(documents.decode_collection(data))

    def letter(data: bytes) -> bytes:
        return documents.encode_dead_letter(documents.decode_dead_letter(data))

    yield Kind(
        ingest.DOCUMENTS,
        lambda: documents.encode_document(_DOCUMENT),
        document,
        change=lambda data: documents.encode_document(replace(documents.decode_document(data), progress=0.75)),
        newer_words={"status": "archived"},
    )
    yield Kind(
        ingest.COLLECTIONS,
        lambda: documents.encode_collection(Collection("acme", "papers", "Papers", AT, deleting=True)),
        collection,
        change=collection,
    )
    yield Kind(
        ingest.DOCUMENT_ACCESS,
        lambda: document_access.encode(DocumentAccess("papers", frozenset({"ann"}), frozenset({"legal"}))),
        lambda data: document_access.encode(document_access.decode(data)),
    )
    yield Kind(ingest.DEAD_LETTERS, lambda: documents.encode_dead_letter(_LETTER), letter, change=letter)
    yield Kind(
        ingest.JOBS,
        lambda: documents.encode_job(IngestJob("acme", "doc-1", "rev-2")),
        lambda data: documents.encode_job(documents.decode_job(data)),
    )
    yield Kind(ingest.KEYS, _note, _note_again, change=_note_again)
    yield Kind(
        ingest.NAMES,
        lambda: b"doc-1",
        lambda data: nats_stores._claimant(Entry("acme.papers.x", data, 1)).encode(),
        is_text=True,
    )
    yield Kind(
        ingest.SOURCES,
        lambda: source_records.encode_source(_SOURCE),
        lambda data: source_records.encode_source(source_records.decode_source(data)),
        change=lambda data: source_records.encode_source(replace(source_records.decode_source(data), paused=True)),
    )
    yield Kind(
        ingest.STORE_CONDITION,
        lambda: condition._encode([_FINDING]),
        lambda data: condition._encode(condition._decode(Entry("ingest", data, 1))),
    )
    yield Kind(
        orchestrator.FORGET,
        lambda: forgetting.encode(forgetting.ForgetRequest(forgetting.Source.document("doc-1"), AT)),
        lambda data: forgetting.encode(forgetting.decode(Job("j", data, 1, TEST_PRINCIPAL, "document"))),
    )


def _retriever() -> Iterator[Kind]:
    def again(data: bytes) -> bytes:
        return revisions._encode(revisions._pointer(json.loads(data)))

    pointer = Pointer("rev-2", 2, "papers", 12, 1_764_000_000_250, deleted=True, languages=("en", "de"))
    yield Kind(retriever.ACTIVE_REVISIONS, lambda: revisions._encode(pointer), again, change=again)
    quality = Comparison(Quality(0.7, 0.65), Quality(0.8, 0.75))
    record = CollectionEmbedding(
        "all-MiniLM-L6-v2-int8",
        "multilingual-e5-small-q4-centred",
        Stage.READY,
        1_764_000_000_250,
        (Question("Wie hoch ist der Turm?", ("doc-1", "doc-2")),),
        0.05,
        Evaluation(
            "all-MiniLM-L6-v2-int8", "multilingual-e5-small-q4-centred", 1, False, quality, quality, 1_764_000_001_000
        ),
        "the model server does not embed now",
    )

    def model_again(data: bytes) -> bytes:
        return collection_models.encode(collection_models.decode(data))

    yield Kind(
        retriever.COLLECTION_MODELS,
        lambda: collection_models.encode(record),
        model_again,
        change=lambda data: collection_models.encode(replace(collection_models.decode(data), problem="")),
        newer_words={"stage": "translating"},
    )


def _memory() -> Iterator[Kind]:
    def head(data: bytes) -> bytes:
        return threads._encode_head(replace(threads._decode_head("t1", data), title="Towers"))

    def message(data: bytes) -> bytes:
        before = threads._decode_message(data)
        return threads._rewritten(data, before, replace(before, text="It was removed."))

    citation = {"number": 1, "document_id": "doc-1", "text": "The tower was built in 1889."}
    yield Kind(
        memory.THREADS,
        lambda: threads._encode_head(Thread("t1", "Towers", AT, AT, 2)),
        lambda data: threads._encode_head(threads._decode_head("t1", data)),
        change=head,
    )
    yield Kind(
        memory.MESSAGES,
        lambda: threads._encode_message(
            ThreadMessage("m1", Role.ASSISTANT, "In 1889. [1]", KEY.run_id, AT, True, (citation,), "supported")
        ),
        lambda data: threads._encode_message(threads._decode_message(data)),
        change=message,
        newer_words={"role": "moderator"},
    )
    yield Kind(
        memory.DELETIONS,
        lambda: deletions.encode_deletion(Deletion(Owner("acme", "ann"), "t1", AT)),
        lambda data: deletions.encode_deletion(deletions.decode_deletion(Job("j", data, 1, TEST_PRINCIPAL))),
    )
    yield Kind(memory.KEYS, _note, _note_again, change=_note_again)

    def fact(data: bytes) -> bytes:
        return facts.encode_fact(facts.decode_fact(data))

    def profile(data: bytes) -> bytes:
        return facts.encode_profile(facts.decode_profile(data))

    yield Kind(
        memory.FACTS,
        lambda: facts.encode_fact(_FACT),
        fact,
        change=lambda data: facts.encode_fact(replace(facts.decode_fact(data), text="I live in Bruges")),
        newer_words={"kind": "belief"},
    )
    yield Kind(
        memory.PROFILES,
        lambda: facts.encode_profile(
            Profile(True, 3, "Ann lives in Ghent.", 2, AT, {"t1": AT}, Plan(KEY.run_id, [_FACT], {"f0": "f1"}))
        ),
        profile,
        change=lambda data: facts.encode_profile(replace(facts.decode_profile(data), paused=False)),
    )


def _tools() -> Iterator[Kind]:
    def change(data: bytes) -> bytes:
        return call_store._rewritten(data, call_store._from_record(data))

    outcome = ToolOutcome(True, 0.5, {"sum": 5}, cached=True, summary="It adds up to 5.")
    yield Kind(
        tools.CALLS,
        lambda: call_store._encode(NotedCall("ab12", AT, outcome, forgotten=False)),
        lambda data: call_store._encode(call_store._from_record(data)),
        change=change,
        message=call_pb2.CallRecord,
    )
    approved = {"add_note": remote_records.Approval("ab12", reads_only=False, by="ann", at=AT)}
    yield Kind(
        tools.SERVERS,
        lambda: server_records.encode(
            remote_records.ServerRecord("https://mcp.example.com/mcp", approved, sealed="AQID")
        ),
        _server_again,
    )
    waiting = WaitingLogin("crm.s1", "v1", "ann", AT)
    login = Login(
        "http://127.0.0.1:4711/callback", "crm", {"client_id": "c1"}, {"issuer": "https://as.example.com"}, {}
    )
    tokens = {"access_token": "a1", "refresh_token": "r1"}
    for name, each in (
        ("waiting", replace(login, waiting=waiting)),
        ("login", replace(login, tokens=tokens, expires_at_s=1.5, renewing_until_s=2.5)),
    ):
        # What is sealed in the record, which is read like a server's without an address.
        yield Kind(
            tools.SERVERS,
            partial(server_records._encode_login, each),
            lambda data: server_records._encode_login(server_records._decode_login(data)),
            name=name,
        )
    connection = Connection("github", "https://api.github.com", "ann-gh", AT, "ann")
    yield Kind(
        tools.CONNECTIONS,
        lambda: connection_records.encode(connection, b"sealed"),
        lambda data: connection_records.encode(*_connection_of(data)),
    )


def _orchestrator() -> Iterator[Kind]:
    def change_record(data: bytes) -> bytes:
        message = runs.parse(data)
        runs.drop_outcome(message)
        return message.SerializeToString()

    def marker(data: bytes) -> RunMarker:
        return markers._decode(Entry(KEY.name, data, 1))

    turn = LearntTurn(KEY.run_id, "t1", "I live in Ghent.", AT)
    yield Kind(
        orchestrator.LEARN,
        lambda: learning.encode_turn(turn),
        lambda data: learning.encode_turn(learning.decode_turn(Job("j", data, 1, TEST_PRINCIPAL))),
    )
    choice = switching.SetModel(Choice("local", "small"), "ann", AT)
    brought = BroughtModel("https://models.example.com/v1", SecretStr("key"), "large", "openai")
    cost = RunCost(KEY, "ann", date(2026, 11, 23), "t1", "large", 10, 20, 0.25)
    place = f"acme.{tally._word('ann')}.2026-11-23.{KEY.run_id}"
    yield Kind(
        orchestrator.RECORDS,
        lambda: runs.encode(_RECORD),
        lambda data: runs.encode(runs.decode(KEY, data)),
        change=change_record,
        message=record_pb2.RunRecord,
    )
    yield Kind(
        orchestrator.RECORDS,
        _waiting_record,
        _waiting_again,
        change=change_record,
        name="waiting",
        message=record_pb2.RunRecord,
    )
    yield Kind(
        orchestrator.MARKERS,
        lambda: markers._encode(RunMarker("ab12", begun=True, parked=True, wait=Wait(AT, AT, ("ann",)))),
        lambda data: markers._encode(replace(marker(data), raw=b"")),
        change=lambda data: markers._encode(replace(marker(data), owner="cd34")),
        message=record_pb2.RunMarker,
    )
    yield Kind(
        orchestrator.KEYS,
        lambda: record_pb2.RunKeyClaim(run_id=KEY.run_id, request_digest=b"\x01\x02").SerializeToString(),
        lambda data: run_store._claim_of(data).SerializeToString(),
        message=record_pb2.RunKeyClaim,
    )
    yield Kind(orchestrator.COSTS, lambda: tally._encode(cost), lambda data: tally._encode(tally._decode(place, data)))
    yield Kind(
        orchestrator.SOURCES,
        lambda: sources._encode(Dependent(KEY, "t1", "ann")),
        lambda data: sources._encode(sources._dependent(f"acme.document.doc-1.{KEY.run_id}", data)),
    )
    yield Kind(
        orchestrator.LIMIT_RULES,
        lambda: limits._encoded([Limit(What.TOKENS, 1000, Per.HOUR), Limit(What.DOLLARS, 0.5, Per.DAY)]),
        lambda data: limits._encoded(limits._decoded(data)),
    )
    switched = agent_switches.SwitchedOff("ann", AT)
    yield Kind(orchestrator.AGENT_SWITCHES, lambda: agent_switches._encoded(switched), _switched_again)
    yield Kind(orchestrator.MODEL_SETTINGS, lambda: switching._encoded(choice), _set_model_again)
    yield Kind(
        orchestrator.MODEL_CREDENTIALS,
        lambda: brought_models._encode(brought),
        lambda data: brought_models._encode(brought_models._decode(data)),
    )


def _events() -> Iterator[Kind]:
    """One kind for each payload that the contract has."""

    def again(data: bytes) -> bytes:
        return event_to_proto(replace(event_from_bytes(data), raw=None)).SerializeToString()

    def unchanged(data: bytes) -> bytes:
        return event_to_proto(event_from_bytes(data)).SerializeToString()

    for payload in orchestrator_pb2.RunEvent.DESCRIPTOR.oneofs_by_name["payload"].fields:

        def write(name: str = payload.name) -> bytes:
            event = filled(orchestrator_pb2.RunEvent, choose=name)
            event.state = filled(state_pb2.StepState).SerializeToString(deterministic=True)
            return bytes(event.SerializeToString(deterministic=True))

        yield Kind(
            orchestrator.RUNS, write, again, change=unchanged, name=payload.name, message=orchestrator_pb2.RunEvent
        )


def _note() -> bytes:
    return idempotency._encode(idempotency._Note("ab" * 32, "item-1", 1_764_000_000.25, is_made=True))


def _note_again(data: bytes) -> bytes:
    return idempotency._encode(idempotency._decode(data))


def _server_again(data: bytes) -> bytes:
    record = server_records.decode(data)
    assert record is not None
    return server_records.encode(record)


def _connection_of(data: bytes) -> tuple[Connection, bytes]:
    found = connection_records.decode(data)
    assert found is not None
    return found


def _switched_again(data: bytes) -> bytes:
    switched = agent_switches._decoded(data)
    assert switched is not None
    return agent_switches._encoded(switched)


def _set_model_again(data: bytes) -> bytes:
    model = switching._decoded(data)
    assert model is not None
    return switching._encoded(model)


def _waiting_record() -> bytes:
    """A run that waits for a person, as a parked one is stored."""
    waiting = replace(_RECORD, status=RunStatus.WAITING, finished_at=None, outcome=Outcome(), pending=(_APPROVAL,))
    message = runs.parse(runs.encode(waiting))
    runs.set_going_on(message, waiting)
    return message.SerializeToString()


def _waiting_again(data: bytes) -> bytes:
    record = runs.decode(KEY, data)
    message = runs.parse(runs.encode(record))
    runs.set_going_on(message, record)
    return message.SerializeToString()


_SESSION = sessions.Session(
    "ab" * 32,
    "https://sso.example.com",
    "acme",
    "ann",
    ["editors"],
    {"sub": "ann", "sid": "s1", "iat": 1_780_000_000},
    AT.timestamp(),
    rotation.Secrets(
        "cd" * 32, AT.timestamp(), pending="ef" * 32, seed="s" * 43, previous="ab" * 32, older=("01" * 8,)
    ),
)
_GUEST = guests.Guest("ab" * 12, "cd" * 32, "ef" * 16, AT.timestamp(), AT.timestamp() + 86_400.0, tenant_id="guests")
_USER = directory.UserRecord(
    "ab" * 12,
    directory.Names("ann@example.com", "00u1"),
    is_active=True,
    created_at=AT.timestamp(),
    changed_at=AT.timestamp(),
    ended_at=AT.timestamp(),
    former=(directory.FormerNames("ann", "00u1", AT.timestamp()),),
    details={"displayName": "Ann"},
)
_GROUP = directory.GroupRecord(
    "cd" * 12, "Sales", AT.timestamp(), AT.timestamp(), external_id="00g1", member_ids=(_USER.user_id,)
)
_KEY = api_keys.ApiKey(
    key_id="ab" * 12,
    name="laptop",
    tenant_id="acme",
    subject="ann",
    scopes=("query", "ingest"),
    digest=bytes(range(32)),
    created_at=AT,
    created_by="bob",
    created_with="cd" * 12,
    expires_at=AT,
    revoked_at=AT,
    rotated_at=AT,
    previous_digest=bytes(range(1, 33)),
    previous_until=AT,
)
_CONTENT = Content("ab" * 32, 1_024, "application/pdf")
_FAILURE = Failure("PDF_ENCRYPTED", "the file is encrypted")
_DOCUMENT = Document(
    tenant_id="acme",
    document_id="doc-1",
    collection_id="papers",
    name="reports/tower.pdf",
    created_at=AT,
    updated_at=AT,
    status=Status.PROCESSING,
    content=_CONTENT,
    revision_count=2,
    metadata={"author": "Eiffel"},
    copy_of="doc-0",
    copies={"towers": "doc-2"},
    batch="vsfb_1",
    pending=Revision("rev-2", 2, _CONTENT, by="ann", queued_at=AT),
    active=Revision("rev-1", 1, _CONTENT),
    stage="embed",
    progress=0.5,
    error=_FAILURE,
    report=Report(
        page_count=2,
        chunk_count=3,
        token_count=400,
        embed_batch_count=1,
        stage_seconds={"parse": 0.5},
        page_statuses=("text", "ocr"),
        warnings=("a page is empty",),
        attempts=1,
        chunker="v3",
        reused_chunk_count=1,
        languages=("en",),
    ),
    swept=True,
    tries=Tries(1, 1, "worker-1", _FAILURE, AT, AT),
    origin=Origin("ab" * 16, "reports/tower.pdf", "v2"),
    history=(
        PastRevision(Revision("rev-0", 0, _CONTENT), RevisionPhase.FAILED, AT, error=_FAILURE),
        PastRevision(Revision("rev-1", 1, _CONTENT, by="ann", queued_at=AT), RevisionPhase.ACTIVE, AT, 2, 3),
    ),
    counted_for=("subject:ann", "group:/staff"),
)
_SOURCE = SourceRecord(
    "acme",
    "ab" * 16,
    "folder",
    "reports",
    "papers",
    "ann",
    AT,
    900,
    settings={"folder": "reports"},
    sealed_secrets="AQ==",
    secret_names=("key",),
    collection_made_at=AT,
    requested_at=AT,
    sync=SyncState(
        AT, AT, AT, Counts(4, 2, 1), (FailingFile("a.pdf", "FILE_TOO_LARGE", "it is large"),), 1, "c", _FAILURE
    ),
)
_LETTER = DeadLetter(
    "acme", "rev-2", 2, "doc-1", "papers", "reports/tower.pdf", _FAILURE, "parse", 3, 1, AT, AT, requeued_at=AT
)
_FINDING = condition.Finding(
    "entries_missing", "DOCUMENTS", 2, 1, "Two records are gone", "Restore a backup", ("acme.doc-1",), AT.isoformat()
)
_APPROVAL: Approval = runs.read(filled(orchestrator_pb2.Approval), Approval)
_RECORD = RunRecord(
    KEY,
    "ann",
    RunRequest(
        RunMode.GROUNDED, "When?", ("papers",), "t1", "auto", ("doc-1",), Budgets(2.5, 100, 3, 4, 5, 6, 0.25, 7), 7
    ),
    RunStatus.COMPLETED,
    AT,
    AT,
    traceparent="00-1-2-01",
    scopes=frozenset({"operator", "query"}),
    outcome=Outcome(
        Answer(
            "It was built in 1889. [1]",
            (
                Citation(
                    1, "doc-1", "tower.pdf", "c1", 3, "The tower was built in 1889.", 4, 9, heading_path=("History",)
                ),
            ),
            SupportStatus.SUPPORTED,
            "model",
            {"kind": "table"},
        ),
        Usage(10, 20, 1.5, 0.25, {"answer": 1.0}, "large"),
        RunError("INTERNAL", "X", "broke", retryable=False),
    ),
)
