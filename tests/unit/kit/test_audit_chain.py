"""Whatever is done to a chain of entries is found."""

import json
import subprocess
from hashlib import sha256
from shutil import which

import pytest

from kit.stores.audit_chain import ChainBroken, ChainCheck, ChainLink, canonical, link_of, sealed


def _chain(count: int) -> list[str]:
    lines: list[str] = []
    link = ChainLink()
    for number in range(1, count + 1):
        lines.append(canonical(sealed({"action": "request", "subject": f"zoë {number}", "status": 200}, link)))
        link = link_of(lines[-1])
    return lines


def _verify(lines: list[str], last: ChainLink | None = None) -> ChainCheck:
    check = ChainCheck(last)
    for line in lines:
        check.take(line)
    return check


def test_whole_chain_and_any_end_of_it_are_right() -> None:
    lines = _chain(5)
    assert _verify(lines).last == link_of(lines[4])
    assert _verify(lines[2:]).first == link_of(lines[2])
    assert _verify(lines[2:], link_of(lines[1])).last == link_of(lines[4])


def _changed(line: str, **changes: object) -> str:
    return canonical({**json.loads(line), **changes})


def _forged(line: str, **changes: object) -> str:
    """Changed, with a hash that is right for it."""
    entry = {**json.loads(line), **changes}
    link = ChainLink(entry["number"] - 1, entry["previous"])
    return canonical(sealed({name: each for name, each in entry.items() if name != "hash"}, link))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda lines: [lines[0], _changed(lines[1], subject="eve"), *lines[2:]], "entry 2 was changed"),
        (lambda lines: [lines[0], _changed(lines[1], new=1), *lines[2:]], "entry 2 was changed"),
        (lambda lines: [lines[0], _forged(lines[1], subject="eve"), *lines[2:]], "entry 3 does not follow entry 2"),
        (lambda lines: [lines[0], *lines[2:]], "entry 2 is missing"),
        (lambda lines: [lines[0], lines[2], lines[1], lines[3]], "entry 2 is missing"),
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], "entry 3 is missing"),
        (lambda lines: [*lines[:2], "", *lines[2:]], "the line behind entry 2 is no entry"),
        (lambda lines: [*lines[:2], '{"number": "3"}', *lines[2:]], "the line behind entry 2 is no entry"),
        (lambda lines: [_forged(lines[0], previous="ab"), *lines[1:]], "entry 1 does not follow entry 0"),
    ],
)
def test_harm_is_found(harm, said) -> None:  # type: ignore[no-untyped-def] # a table of lambdas
    with pytest.raises(ChainBroken, match=said):
        _verify(harm(_chain(4)))


def test_chain_that_does_not_go_on_from_what_is_known_is_found() -> None:
    with pytest.raises(ChainBroken, match="entry 3 does not follow entry 2"):
        _verify(_chain(4)[2:], ChainLink(2, "ab"))


@pytest.mark.skipif(which("jq") is None, reason="jq is not installed")
def test_hash_is_what_jq_and_sha256sum_make_of_an_entry() -> None:
    (line,) = _chain(1)
    text = subprocess.run(["jq", "-acjS", "del(.hash)"], input=line.encode(), capture_output=True, check=True).stdout
    assert sha256(text).hexdigest() == json.loads(line)["hash"]
