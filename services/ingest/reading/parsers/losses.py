"""What of a file is not in its text, in the words of its report."""

from collections.abc import Iterable

from services.ingest.reading.parsers.office.package import Package, Relationship


def left_out(count: int, what: str) -> list[str]:
    """`1 picture was left out`, `3 pictures were left out`; no words for none. `what` is in the singular."""
    if not count:
        return []
    return [f"1 {what} was left out" if count == 1 else f"{count} {what}s were left out"]


def comments_left_out(package: Package, links: Iterable[Relationship]) -> list[str]:
    """How many comments the parts hold that a document, a slide or a sheet points to."""
    parts = sorted({link.target for link in links if link.kind == "comments"})
    roots = [root for root in map(package.xml, parts) if root is not None]
    return left_out(sum(1 for root in roots for _ in root.iter("{*}comment", "{*}cm")), "comment")
