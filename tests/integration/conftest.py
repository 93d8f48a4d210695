"""Two systems for the whole session: one without a language model, as a user gets it, and one with a scripted model."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.testing.openai import Reply, ScriptedModel, scripted_model
from kit.testing.pdf_files import pdf_of
from tests.doubles.speech import SpeechService, speech_service
from tests.in_a_thread import in_a_thread
from tests.integration.api import Api, Json
from tests.integration.system import Groundwork, running
from tests.service.tools.mail_server import MailServer, mail_server

SEVERAL = "orchestrator=2,gateway=2,ingest-worker=2,ingest=2,memory=2,tools=2"
UNHURRIED = {
    "GROUNDWORK_RETRIEVER_EMBED_TIMEOUT_S": "10",
    "GROUNDWORK_RETRIEVER_ENGINE_TIMEOUT_S": "20",
    "GROUNDWORK_RETRIEVER_RERANK_TIMEOUT_S": "10",
    "GROUNDWORK_RUN_SCORE_TIMEOUT_S": "10",
    "GROUNDWORK_RUN_SEARCH_TIMEOUT_S": "100",
    "GROUNDWORK_RUN_TOOLS_TIMEOUT_S": "20",
}
"""However busy the machine is: an answer goes without no part of the system that is only slow."""
DATA = Path(__file__).resolve().parents[1] / "data" / "integration"
REPORT_PAGES = (
    ("Annual report", "", "The fleet carried 4812 passengers in the first quarter."),
    ("Repairs", "", "The ferry Wangerooge was docked for nine weeks because of a cracked propeller shaft."),
)


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Groundwork]:
    """The system as `make run` starts it. Tests share it: each uses a collection of its own."""
    folder = tmp_path_factory.mktemp("system")
    with running(Groundwork(folder / "data", models_dir.absolute(), UNHURRIED)) as groundwork:
        yield groundwork


@pytest.fixture
def api(system: Groundwork) -> Iterator[Api]:
    with Api.open(system.base_url) as api:
        yield api


@pytest.fixture
def collection(api: Api) -> str:
    """An empty collection."""
    return api.new_collection()


@dataclass(frozen=True)
class Library:
    """One document of each supported format, ready."""

    collection_id: str
    documents: dict[str, Json]

    def id_of(self, name: str) -> str:
        document_id: str = self.documents[name]["id"]
        return document_id


@pytest.fixture(scope="session")
def library(system: Groundwork) -> Library:
    with Api.open(system.base_url) as api:
        collection_id = api.new_collection()
        names = ("handbook.md", "lighthouse.txt", "recipe.html", "stations.csv")
        documents = api.ingest_files(collection_id, [DATA / name for name in names])
        documents["report.pdf"] = api.ingest(collection_id, "report.pdf", pdf_of(REPORT_PAGES))
    assert {document["status"] for document in documents.values()} == {"ready"}, documents
    return Library(collection_id, documents)


class Model:
    """The scripted model, which lives in a thread of its own: the system outlives the event loop of any one test."""

    def __init__(self, scripted: ScriptedModel, loop: asyncio.AbstractEventLoop) -> None:
        self.scripted = scripted
        self._loop = loop

    def will(self, *replies: Reply) -> None:
        """Sets the script: replies in order, the last repeats. Forgets what was asked before."""
        self.scripted.replies[:] = replies
        self.scripted.reply_to = None
        self.scripted.requests.clear()
        self._loop.call_soon_threadsafe(self.scripted.hung_up.clear)

    def will_by_request(self, reply_to: Callable[[Json], Reply]) -> None:
        """Sets what is replied to each request. Forgets what was asked before."""
        self.will(Reply(["Nothing is scripted."]))
        self.scripted.reply_to = reply_to

    def open(self, gate: asyncio.Event) -> None:
        """Opens a reply's gate."""
        self._loop.call_soon_threadsafe(gate.set)


@pytest.fixture(scope="session")
def scripted() -> Iterator[Model]:
    with in_a_thread(scripted_model(Reply(["Nothing is scripted."]))) as (model, loop):
        yield Model(model, loop)


class Voices:
    """The double of the endpoints that hear and speak, which lives in a thread of its own."""

    def __init__(self, service: SpeechService, loop: asyncio.AbstractEventLoop) -> None:
        self.service = service
        self._loop = loop

    def will(self, *texts: str, endless: bool = False) -> None:
        """Sets what is understood, one text after another, and whether a voice goes on for ever. Forgets what was said before."""
        self.service.texts[:] = texts
        self.service.spoken.clear()
        self.service.endless = endless
        self._loop.call_soon_threadsafe(self.service.hung_up.clear)

    def hung_up(self) -> bool:
        """Waits until a client breaks off a voice."""
        waits = asyncio.wait_for(self.service.hung_up.wait(), 60)
        return asyncio.run_coroutine_threadsafe(waits, self._loop).result()


@pytest.fixture(scope="session")
def voices() -> Iterator[Voices]:
    with in_a_thread(speech_service()) as (service, loop):
        yield Voices(service, loop)


@pytest.fixture(scope="session")
def mailbox() -> Iterator[MailServer]:
    """The mail server of the system with a model."""
    with in_a_thread(mail_server(MailServer())) as (server, _):
        yield server


@pytest.fixture(scope="session")
def model_system(
    tmp_path_factory: pytest.TempPathFactory, models_dir: Path, scripted: Model, mailbox: MailServer, voices: Voices
) -> Iterator[Groundwork]:
    """A system with several of each service, whose language model is scripted, and which notices dead processes fast."""
    provider = {
        "base_url": scripted.scripted.base_url,
        "api_key": "test",
        "models": {"scripted": {"context_tokens": 32_768}, "another": {}},
        "local": False,  # as a model outside: collections that allow local models only are not to ask it
        "breaker_failures": 1_000,  # one test's failing model is not to be left alone by the next test
    }
    settings = {
        **UNHURRIED,
        "GROUNDWORK_LLM_PROVIDERS": json.dumps({"scripted": provider}),
        # What is scripted is the answer: nothing else asks the model.
        "GROUNDWORK_VERIFY_JUDGE": "learned",
        "GROUNDWORK_MEMORY": "off",
        # A model that falls silent is waited for so long. Less, and one is given up whose machine stood still for a moment.
        "GROUNDWORK_LLM_STALL_TIMEOUT_S": "20",
        "GROUNDWORK_RUN_LEASE_S": "1",
        "GROUNDWORK_SMTP_HOST": "127.0.0.1",
        "GROUNDWORK_SMTP_PORT": str(mailbox.port),
        "GROUNDWORK_SMTP_TLS": "none",
        "GROUNDWORK_SMTP_FROM": "assistant@example.com",
        "GROUNDWORK_SPEECH_BASE_URL": voices.service.url,
        "GROUNDWORK_SPEECH_TRANSCRIPTION_MODEL": "whisper-1",
        "GROUNDWORK_SPEECH_MODEL": "tts-1",
        "GROUNDWORK_UPLOAD_LIMIT_BYTES": str(2 * 1024 * 1024),
        "GROUNDWORK_INGEST_LEASE_TTL_S": "3",
        "GROUNDWORK_INGEST_SWEEP_INTERVAL_S": "3",
        "GROUNDWORK_RESTART_BACKOFF_MAX_S": "0.4",
    }
    folder = tmp_path_factory.mktemp("model-system")
    with running(Groundwork(folder / "data", models_dir.absolute(), settings, SEVERAL)) as groundwork:
        yield groundwork


@pytest.fixture(scope="session")
def handbook(model_system: Groundwork) -> str:
    """A collection of the system with a model that holds the handbook."""
    with Api.open(model_system.base_url) as api:
        collection_id = api.new_collection()
        api.ingest_files(collection_id, [DATA / "handbook.md"])
    return collection_id


@pytest.fixture
def model_api(model_system: Groundwork) -> Iterator[Api]:
    with Api.open(model_system.base_url) as api:
        yield api
