"""A passage as a model is shown it. Every prompt and every observation of a tool shows passages by this function and no other."""

from dataclasses import asdict

from kit.vocabulary.passages import place_of
from services.orchestrator.log.events import Evidence


def source_block(source: Evidence) -> str:
    """The number of the passage, the line that says where it stands, and below it the text."""
    origin = asdict(source.origin) if source.origin else {}
    return f"[{source.number}] ({place_of(source, origin)})\n{source.text}"
