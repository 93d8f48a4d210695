"""A second `groundwork up` beside a running system: on its own, on the same port, on the same data directory."""

import pytest

from tests.integration.api import Api
from tests.integration.system import Groundwork, running
from tests.system.test_supervisor import fresh, up

__all__ = ["fresh"]
pytestmark = pytest.mark.integration


def test_two_instances_side_by_side_know_nothing_of_each_other(system: Groundwork, fresh: Groundwork) -> None:
    with running(fresh), Api.open(fresh.base_url) as own, Api.open(system.base_url) as other:
        document = own.ingest("default", "only-here.txt", b"The pilot station is called Kugelbake.")
        assert own.search("default", "pilot station Kugelbake")["hits"]
        assert other.http.get(f"/v1/documents/{document['id']}").status_code == 404
        assert not [
            hit for hit in other.search("default", "pilot station Kugelbake")["hits"] if "Kugelbake" in hit["text"]
        ]


def test_a_taken_port_is_named_with_its_owner_and_a_way_out(system: Groundwork, fresh: Groundwork) -> None:
    refused = up(fresh, GROUNDWORK_PORT=str(system.port))
    assert refused.returncode != 0
    assert f"Port {system.port} is taken" in refused.stderr
    assert f"(process {system.state()['supervisor_pid']})" in refused.stderr
    assert f"GROUNDWORK_PORT={system.port + 1}" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_data_directory_in_use_is_refused(system: Groundwork, fresh: Groundwork) -> None:
    refused = up(fresh, GROUNDWORK_DATA_DIR=str(system.data_dir))
    assert refused.returncode != 0
    assert "is in use by another Groundwork" in refused.stderr
    assert system.state()["ready"], "the running one is untouched"
