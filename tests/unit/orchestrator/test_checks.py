"""Where a claim is looked for that its citations do not carry."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from services.orchestrator.log.events import Evidence
from services.orchestrator.models import RunRecord
from services.orchestrator.ports import Searcher
from services.orchestrator.verification.checks import Checks

PAGE = Evidence(1, "web-1-0", "web-1", "fees (harbour.example)", 1, (), "The fee is 42 euros.", 0.0)


@pytest.mark.parametrize(
    ("asked", "evidence", "searches"),
    [
        ((), PAGE, False),
        (("default",), PAGE, True),
        ((), replace(PAGE, collection_id="default"), True),
    ],
    ids=["a page of the web alone", "collections of the request", "a passage of a collection"],
)
def test_claims_are_looked_for_only_where_there_is_a_collection(
    asked: tuple[str, ...], evidence: Evidence, searches: bool
) -> None:
    record = Mock(spec=RunRecord)
    record.request = Mock(collection_ids=asked, document_ids=(), verify="")
    check = Checks((), searcher=Mock(spec=Searcher), sources=Mock()).of(Mock(), record, [evidence])
    assert (check.find is not None) is searches
