"""Ids become keys and subjects: nothing but their alphabet gets through, not even a line break at the end."""

import pytest

from services.ingest.documents.uploads import naming
from services.ingest.errors import BadName


@pytest.mark.parametrize("raw", ["default\n", "\ndefault", "Default", "a b", "-a", "", "a" * 65, "ä", "*", "a.b", "a>"])
def test_what_is_no_collection_id_is_refused(raw: str) -> None:
    with pytest.raises(BadName):
        naming.collection_id(raw)


@pytest.mark.parametrize(
    ("raw", "is_one"), [("0123456789ab", True), ("0123456789ab\n", False), ("0123456789AB", False), ("0123*", False)]
)
def test_document_id_is_hexadecimal_to_its_end(raw: str, is_one: bool) -> None:
    assert naming.is_document_id(raw) is is_one
