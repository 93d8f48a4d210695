"""A chunk as an index returned it. Most are ranked by a few fields; the rest is decoded for the hits that are returned."""

import json
from dataclasses import dataclass, fields

from services.retriever.models import BoundingBox, Chunk

_CHUNK_FIELDS = tuple(field.name for field in fields(Chunk))


class ChunkUnreadable(Exception):
    """What an index holds of a chunk cannot be decoded."""

    def __init__(self, chunk_id: str, document_id: str) -> None:
        super().__init__(f"chunk {chunk_id} of document {document_id} cannot be decoded")
        self.chunk_id = chunk_id
        self.document_id = document_id


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as an index returned it: what ranking needs, and the rest on demand."""

    chunk_id: str
    document_id: str
    revision_id: str
    text_hash: str
    body: str

    @property
    def chunk(self) -> Chunk:
        """The whole chunk, decoded now, without fields that a newer version added. Raises ChunkUnreadable."""
        try:
            stored = json.loads(self.body)
            known = {name: stored[name] for name in _CHUNK_FIELDS if name in stored}
            known["heading_path"] = tuple(known["heading_path"])
            places = known["bounding_boxes"]
            spans = stored.get("box_spans") or [()] * len(places)  # an index of before holds none
            known["bounding_boxes"] = tuple(BoundingBox(*box, *of) for box, of in zip(places, spans, strict=True))
            return Chunk(**known)
        except (ValueError, TypeError, LookupError) as error:
            raise ChunkUnreadable(self.chunk_id, self.document_id) from error


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored chunk and the score by which an engine ranked it.

    `cosine`: with the query, where the score is not it; see `similarity.py`.
    """

    stored: StoredChunk
    score: float
    cosine: float | None = None
