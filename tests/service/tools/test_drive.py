"""Google Drive as tools, against a double that is held against Google's discovery document."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from pydantic import SecretStr

from kit.access.principal import Principal
from kit.errors import FailedPrecondition, InvalidArgument
from kit.network.egress import EgressGuard, parse_networks
from services.tools.adapters.connection_doors import connection_doors
from services.tools.adapters.http import drive as client_module
from services.tools.adapters.http.drive import DriveClient
from services.tools.connections.desk import ConnectionDesk
from services.tools.connections.device_login import DeviceLogins
from services.tools.connections.logins import decode_login
from services.tools.connections.records import Connection
from services.tools.settings import OAuthSettings, ToolsSettings
from tests.doubles.drive import DOCUMENT, Drive
from tests.doubles.http_double import Failure
from tests.service.tools.boxes import NOW, Box
from tests.service.tools.connected import ReadFiles, Records, services_with

ANN = Principal("acme", "ann")
TOKEN = "t0ken"
FEES = b"The harbour takes 40 crowns a night."


@dataclass
class Desk:
    drive: Drive
    client: DriveClient
    box: Box
    files: ReadFiles


@asynccontextmanager
async def connected(networks: str = "127.0.0.0/8") -> AsyncIterator[Desk]:
    drive = Drive()
    drive.tokens.append(TOKEN)
    async with drive.running():
        client = DriveClient(EgressGuard(parse_networks(networks)), drive.url)
        connection = Connection("google-drive", drive.url, "Owner@example.com", NOW, "ann", SecretStr(TOKEN))
        services = services_with(connection)
        services.drive = client
        yield Desk(drive, client, Box(ToolsSettings(), services=services), services.files)
        await client.close()


async def test_files_are_found_by_words_and_folder_and_the_newest_without_either() -> None:
    async with connected() as desk:
        desk.drive.put("fees1", "Anna's fees.txt", FEES)
        desk.drive.put("lunch1", "Lunch.txt", b"At noon.")
        desk.drive.put("below1", "Below")
        desk.drive.put("deep1", "Deep fees.txt", FEES, parent="below1")
        found = await desk.box.call("drive_search", {"query": "anna's fees"})
        assert [each["file"] for each in found.output["found"]] == ["fees1"]
        listed = await desk.box.call("drive_search", {"folder": "https://drive.google.com/drive/folders/below1?hl=de"})
        assert [each["name"] for each in listed.output["found"]] == ["Deep fees.txt"]
        newest = await desk.box.call("drive_search", {"top_k": 2})
        assert (len(newest.output["found"]), "more" in newest.output) == (2, True)
        orders = ["orderBy" in each.query for each in desk.drive.requests]
        assert orders == [False, True, True]
        assert {each.headers["authorization"] for each in desk.drive.requests} == {f"Bearer {TOKEN}"}


async def test_file_is_read_and_a_document_is_exported() -> None:
    async with connected() as desk:
        desk.drive.put("fees1", "Fees.txt", FEES)
        desk.drive.put("doc1", "Plan", b"exported", kind=DOCUMENT)
        read = await desk.box.call("drive_read", {"file": "fees1"})
        assert (read.passages[0].text, desk.files.read) == (FEES.decode(), [("Fees.txt", FEES)])
        assert read.passages[0].metadata["url"] == "https://drive.google.com/file/d/fees1"
        await desk.box.call("drive_read", {"file": "https://docs.google.com/document/d/doc1/edit"})
        assert desk.files.read[-1] == ("Plan.docx", b"exported")


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("gone1", "DRIVE_FAILED"),
        ("locked1", "DRIVE_FAILED"),
        ("form1", "DRIVE_FAILED"),
        ("folder1", "INVALID_ARGUMENTS"),
        ("../changes", "INVALID_ARGUMENTS"),
        ("https://evil.example.com/d/fees1", "INVALID_ARGUMENTS"),
        ("large1", "DRIVE_FILE_TOO_LARGE"),
    ],
)
async def test_what_cannot_be_read_is_said(file: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FILE_BYTES_MAX", 100)
    async with connected() as desk:
        desk.drive.put("locked1", "Locked.txt", FEES)
        desk.drive.locked.add("locked1")
        desk.drive.put("form1", "Form", FEES, kind="application/vnd.google-apps.form")
        desk.drive.put("folder1", "Folder")
        desk.drive.put("large1", "Large.txt", b"x" * 101)
        outcome = await desk.box.call("drive_read", {"file": file})
        assert (outcome.error_reason, desk.files.read) == (reason, []), outcome


async def test_refused_token_address_and_limit_are_said() -> None:
    async with connected() as desk:
        desk.drive.tokens.clear()
        assert (await desk.box.call("drive_search", {})).error_reason == "CONNECTION_REFUSED"
    async with connected(networks="") as desk:
        assert (await desk.box.call("drive_search", {})).error_reason == "ADDRESS_REFUSED"
    async with connected() as desk:
        errors = [{"reason": "userRateLimitExceeded"}]
        desk.drive.failures.append(Failure("GET /drive", 403, {"error": {"message": "Too often.", "errors": errors}}))
        assert (await desk.box.call("drive_search", {})).error_reason == "WEB_LIMIT"
        count = len(desk.drive.requests)
        assert (await desk.box.call("drive_search", {})).error_reason == "WEB_LIMIT"
        assert len(desk.drive.requests) == count, "it is left alone"


async def test_account_of_a_service_and_a_persons_file_connect_and_renew() -> None:
    drive = Drive()
    async with drive.running():
        guard = EgressGuard(parse_networks("127.0.0.0/8"))
        client = DriveClient(guard, drive.url)
        oauth = {"google-drive": OAuthSettings(token_url=f"{drive.url}/token")}
        doors = connection_doors(oauth, guard, _now, github=None, drive=client, mail=None)
        records = Records([])
        desk = ConnectionDesk(records, doors, DeviceLogins(None, _now), _now)
        person = {"type": "authorized_user", "client_id": "c", "client_secret": "cl1ent", "refresh_token": "r3fresh"}
        for given in ({"type": "service_account", **json.loads(drive.service_account)}, person):
            made = await desk.connect(ANN, "google-drive", json.dumps(given), shared=False)
            assert (made.account, decode_login(made.secret) is not None) == ("Owner@example.com", True)
            assert await desk.connections.ask(ANN, "google-drive", _shown) == (drive.tokens[-1], True)
        with pytest.raises(FailedPrecondition, match="has been revoked"):
            await desk.connect(ANN, "google-drive", json.dumps({**person, "refresh_token": "0ther"}), shared=False)
        for wrong in ("ya29.plain", '{"type": "authorized_user"}', '{"type": []}', "[" * 500):
            with pytest.raises(InvalidArgument):
                await desk.connect(ANN, "google-drive", wrong, shared=False)
        await client.close()


async def _shown(connection: Connection) -> tuple[str, bool]:
    return connection.secret.get_secret_value(), connection.is_token


def _now() -> datetime:
    """The double holds assertions against the clock."""
    return datetime.now(UTC)
