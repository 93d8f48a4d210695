"""Questions about the installation are answered from the documentation of its release."""

import pytest

from kit.version import release
from services.tools.models import Call
from services.tools.toolbox.documents.architecture_lookup import architecture_lookup
from tests.unit.tools.boxes import make_context


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("How do I back up and restore the data?", "operations/"),
        ("Which setting decides what becomes of a claim that its sources do not carry?", "settings.md"),
        ("Where does a watched folder keep its cursor?", "sources.md"),
    ],
)
async def test_sections_come_from_the_page_that_says_it(question: str, page: str) -> None:
    found = await architecture_lookup(make_context(Call("acme", "architecture_lookup", {})), question, 3)
    assert found.content["release"] == release()
    assert 1 <= len(found.passages) <= 3
    assert [each for each in found.passages if page in each.metadata["url"]], found.passages
    assert all(each.text for each in found.passages)


async def test_words_that_no_page_has_find_nothing_and_it_says_so() -> None:
    found = await architecture_lookup(make_context(Call("acme", "architecture_lookup", {})), "zqvorlux", 3)
    assert not found.passages
    assert "other words" in found.content["note"]
