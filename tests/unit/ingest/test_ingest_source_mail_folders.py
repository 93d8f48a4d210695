"""Names of folders: only * is special, and no name or pattern takes long."""

import pytest

from services.ingest.adapters.sources._mail_folders import chosen, matches, wanted_folders
from services.ingest.errors import BadSource, SourceAway


@pytest.mark.parametrize(
    ("name", "pattern", "is_one"),
    [
        ("Projects/A", "Projects/*", True),
        ("Projects", "Projects/*", False),
        ("a.b", "a?b", False),
        ("[Gmail]/Sent", "[Gmail]/*", True),
        ("a", "a*a", False),
        ("aa", "a*a", True),
        ("ab", "ab*b", False),
        ("abcbc", "a*bc", True),
        ("xabyabz", "*ab*ab*", True),
        ("xabyaz", "*ab*ab*", False),
        ("anything", "**", True),
        ("a\nb", "a*b", True),
    ],
)
def test_star_stands_for_any_characters(name: str, pattern: str, is_one: bool) -> None:
    assert matches(name, pattern) is is_one


def test_no_name_is_compared_again_and_again() -> None:
    assert not matches("a" * 100_000 + "c", "*a" * 20 + "b*")


def test_setting_has_a_bound() -> None:
    assert wanted_folders(" INBOX , ,Projects/* ") == ["INBOX", "Projects/*"]
    with pytest.raises(BadSource, match="at most 20 times"):
        wanted_folders("*a" * 21)
    with pytest.raises(BadSource, match="at most 2000 characters"):
        wanted_folders("a" * 2001)


def test_folder_that_is_not_there_is_named_with_those_that_are() -> None:
    assert chosen(["inbox", "P*"], ["P2", "INBOX", "P1"]) == ["INBOX", "P1", "P2"]
    with pytest.raises(SourceAway, match="no folder 'Sent'; there are: INBOX"):
        chosen(["Sent"], ["INBOX"])
