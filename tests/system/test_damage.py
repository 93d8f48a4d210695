"""Files of the message store damaged while the system is stopped: nothing is swallowed without a word."""

import shutil
from pathlib import Path

import pytest

from tests.integration.api import Api
from tests.integration.system import Groundwork, running
from tests.system.test_backup import command

pytestmark = pytest.mark.integration
DOCUMENTS = 12


def block(system: Groundwork, stream: str) -> Path:
    """The first file of a stream's messages."""
    (path,) = (system.data_dir / "nats").glob(f"jetstream/*/streams/{stream}/msgs/1.blk")
    return path


def test_half_of_the_records_cut_off_are_there_again_and_said_to_have_been_gone(
    tmp_path: Path, models_dir: Path
) -> None:
    system = Groundwork(tmp_path / "data", models_dir.absolute())
    texts = {
        f"mooring-{n}.txt": f"The mooring number {n} lies in the harbour of Emden.".encode() for n in range(DOCUMENTS)
    }
    with running(system), Api.open(system.base_url) as api:
        for name, text in texts.items():
            api.ingest("default", name, text)
        before = api.get("/v1/collections/default/documents")["documents"]
        assert len(before) == DOCUMENTS
        assert api.get("/readyz")["status"] == "ready"
    records = block(system, "KV_DOCUMENTS")
    records.write_bytes(records.read_bytes()[: records.stat().st_size // 2])

    examined = command(system, "doctor")
    assert examined.returncode == 1
    assert "can be put right, which the next start does" in examined.stdout
    assert "Groundwork is stopped" in examined.stdout
    refused = command(system, "backup", str(tmp_path / "backup.tar"))
    assert (refused.returncode, "no backup was made" in refused.stderr) == (1, True)

    with running(system), Api.open(system.base_url) as api:
        assert api.get("/v1/collections/default/documents")["documents"] == before
        answer = api.get("/readyz")
        assert answer["status"] == "damaged"
        assert {finding["where"] for finding in answer["damage"]} == {"DOCUMENTS"}
        assert all(finding["count"] == finding["repaired"] > 0 for finding in answer["damage"])
        assert "DAMAGE" in system.printed()
        accepted = command(system, "doctor", "--accept")
        assert accepted.returncode == 0, accepted.stdout
        for said in ("Groundwork runs", "the text index lacks no document", "INGEST   0 waiting", f"{DOCUMENTS} ready"):
            assert said in accepted.stdout
        assert api.get("/readyz")["status"] == "ready"


def test_a_start_that_eats_memory_ends_with_the_reason_and_a_backup_brings_it_back(
    tmp_path: Path, models_dir: Path
) -> None:
    system = Groundwork(tmp_path / "data", models_dir.absolute())
    backup = str(tmp_path / "backup.tar")
    with running(system), Api.open(system.base_url) as api:
        document = api.ingest("default", "mooring.txt", b"The mooring lies in the harbour of Emden.")
        assert command(system, "backup", backup).returncode == 0
    # So little that the first look at the process is enough: a small store is ready by the second.
    limited = Groundwork(
        system.data_dir, system.models_dir, {"GROUNDWORK_NATS_START_MEMORY_BYTES": "1"}, port=system.port
    )
    started = command(limited, "up")
    assert started.returncode == 1
    assert "without becoming ready; 0 MB are allowed" in started.stderr
    assert "groundwork restore FILE --replace" in started.stderr
    assert command(system, "restore", backup, "--replace").returncode == 0
    shutil.rmtree(next(system.data_dir.glob("nats.replaced-*")))
    with running(system), Api.open(system.base_url) as api:
        assert [each["id"] for each in api.get("/v1/collections/default/documents")["documents"]] == [document["id"]]
