"""Files on their way leave nothing behind."""

from pathlib import Path

from services.ingest.spool import Spool


def test_folder_of_a_dead_process_is_removed_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    dead = tmp_path / "spool-dead"
    dead.mkdir()
    (dead / "spool-file").write_text("left behind")
    with Spool.own(tmp_path) as living, living.file() as path, Spool.own(tmp_path), Spool.own(tmp_path):
        assert path.exists()
        assert not dead.exists()
        assert len(list(tmp_path.iterdir())) == 3
    assert list(tmp_path.iterdir()) == []
