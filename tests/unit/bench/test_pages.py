"""A page that is renewed in part."""

from bench.conditions import Conditions
from bench.pages import renewed
from bench.report import Figure, Part, render


def page(commit: str, *parts: Part) -> str:
    conditions = Conditions("2026-01-01", "a processor", 2, 24.0, "Linux", "3.11", "a model", commit, "0.1")
    return render(parts, conditions)


def part(title: str, measured: str) -> Part:
    return Part(title, f"About {title}.", [Figure(f"figure of {title}", measured, "< 5", reached=True)])


def test_what_was_not_measured_again_keeps_its_figures_and_says_of_which_version_they_are() -> None:
    old = page("aaa", part("Searches", "1"), part("Streams", "2"))
    found = renewed(old, page("bbb", part("Streams", "3"), part("Steps", "4")))
    rows = [line.split("|")[1:3] for line in found.splitlines() if line.startswith("| figure of")]
    assert [(name.strip(), value.strip()) for name, value in rows] == [
        ("figure of Searches", "1"),
        ("figure of Streams", "3"),
        ("figure of Steps", "4"),
    ]
    assert found.count("Measured in an earlier run: 2026-01-01, commit aaa, a model, a processor") == 1
    assert "* commit: bbb" in found
    assert found.index("## Searches") < found.index("## Streams") < found.index("## Steps")


def test_figures_keep_the_version_that_measured_them_however_often_the_page_is_renewed() -> None:
    once = renewed(page("aaa", part("Searches", "1")), page("bbb", part("Streams", "2")))
    twice = renewed(once, page("ccc", part("Streams", "3")))
    assert twice.count("Measured in an earlier run") == 1
    assert "commit aaa" in twice
    assert renewed(twice, page("ccc", part("Streams", "3"))) == twice
