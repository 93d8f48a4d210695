"""In which embedding space each document of a search is searched. A document may lie in several, while its collection's model is
being changed; each is searched in exactly one, so that nothing is found twice and nothing is left out (docs/adr/0018)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from services.retriever.indexes.stored_chunk import StoredChunk
from services.retriever.models import EmbeddingSpace, Pointer


def searched_model(models: Sequence[str], chosen: str) -> str:
    """That of a document which lies in the spaces of `models`: its collection's if it is there already, else the one that it came
    with. Empty for a document whose model is not known."""
    return chosen if chosen in models else models[0]


@dataclass(frozen=True)
class Placement:
    """As it was when the search began: a swap while it runs makes no difference to it."""

    chosen: Mapping[str, str]
    """The model of each collection that has one; the documents of others are searched where they lie."""
    collections: Mapping[str, tuple[str, ...]]
    """By model: the collections that have documents to be searched in its space. An empty name stands for all models."""
    pointer_of: Callable[[str], Pointer | None]
    """Of a document."""

    def model_of(self, document_id: str) -> str:
        """Empty where any will do."""
        pointer = self.pointer_of(document_id)
        if pointer is None:
            return ""
        model = searched_model(pointer.models, self.chosen.get(pointer.collection_id, ""))
        if model in self.collections:
            return model
        # It came into that space while the search was under way, which began without it.
        return next((each for each in pointer.models if each in self.collections), model)

    def is_searched_in(self, stored: StoredChunk, space: EmbeddingSpace) -> bool:
        """Whether the chunk's document is searched in that space, and not only kept there."""
        return self.model_of(stored.document_id) in ("", space.model)

    def collections_in(self, space: EmbeddingSpace) -> tuple[str, ...]:
        """Those that have documents to be searched in the space."""
        return tuple(dict.fromkeys((*self.collections.get(space.model, ()), *self.collections.get("", ()))))
