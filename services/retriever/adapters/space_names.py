"""Names of embedding spaces for files and collections."""

import hashlib
import re

from services.retriever.models import EmbeddingSpace

_READABLE_CHARACTERS = 48


def space_slug(space: EmbeddingSpace) -> str:
    """Readable, and different for models whose names differ in odd characters."""
    readable = re.sub(r"[^a-z0-9]+", "-", space.model.lower()).strip("-")[:_READABLE_CHARACTERS]
    digest = hashlib.blake2b(space.model.encode(), digest_size=4).hexdigest()
    return f"{readable}-{space.dimension}-{digest}"
