"""Changing the embedding model of a collection, as its owner commands it. Each command is one compare-and-set of the collection's
record; the work is done by `embedding_builder.py`."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kit.errors import Aborted, GroundworkError
from services.retriever.errors import CollectionNotFound, EmbeddingModelUnknown, PointerConflict
from services.retriever.model_change.collection_embedding import CollectionEmbedding
from services.retriever.model_change.embedding_map import EmbeddingMap
from services.retriever.model_change.evaluation import Question
from services.retriever.models import Amount
from services.retriever.ports import CollectionRights, EmbeddingModels, EmbeddingStore
from services.retriever.revisions.placement import searched_model
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.validation import check_margin, check_questions, check_scope_id

_MAX_ATTEMPTS = 8


@dataclass(frozen=True)
class EmbeddingStatus:
    """What is recorded of a collection's model, and where its documents lie. `is_recorded`: False for one that follows the
    installation, whose documents keep the model that they came with."""

    collection_id: str
    record: CollectionEmbedding
    is_recorded: bool
    whole: Amount
    in_model: Amount
    in_other: Amount
    searched: Mapping[str, Amount]
    """By model, what is searched with it now."""
    available: tuple[str, ...]
    """Models that there are, that for new texts first; empty when the model server cannot be asked."""


class EmbeddingChanges:
    """What the owner of a collection may command, and anybody who reads it may look at."""

    def __init__(
        self,
        store: EmbeddingStore,
        known: EmbeddingMap,
        revisions: RevisionMap,
        models: EmbeddingModels,
        rights: CollectionRights,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._known = known
        self._revisions = revisions
        self._models = models
        self._rights = rights
        self._clock = clock

    async def status(self, tenant_id: str, collection_id: str) -> EmbeddingStatus:
        """Raises CollectionNotFound."""
        check_scope_id("collection_id", collection_id)
        if not await self._rights.readable((collection_id,)):
            raise CollectionNotFound(f"there is no collection {collection_id}, or it is not yours to see")
        return await self._status(tenant_id, collection_id)

    async def change(
        self, tenant_id: str, collection_id: str, model: str, questions: Sequence[Question], margin: float
    ) -> EmbeddingStatus:
        """Begins to build the collection anew with `model`. Raises EmbeddingModelUnknown, EmbeddingUnchanged or
        EmbeddingChangeUnderWay."""
        await self._require_changeable(collection_id)
        check_questions(questions)
        check_margin(margin)
        available = await self._models.embedding_models()
        if model not in available:
            raise EmbeddingModelUnknown(
                f"the model server does not embed with {model!r}; it has {', '.join(available)}", model=model
            )

        def decide(record: CollectionEmbedding) -> CollectionEmbedding:
            return record.changed(model, tuple(questions), margin, int(self._clock() * 1000))

        return await self._command(tenant_id, collection_id, decide)

    async def evaluate(
        self, tenant_id: str, collection_id: str, questions: Sequence[Question], margin: float
    ) -> EmbeddingStatus:
        """Has both models compared again. Raises EmbeddingNotReady."""
        await self._require_changeable(collection_id)
        check_questions(questions)
        check_margin(margin)
        return await self._command(
            tenant_id, collection_id, lambda record: record.to_evaluate(tuple(questions), margin)
        )

    async def swap(self, tenant_id: str, collection_id: str, *, force: bool) -> EmbeddingStatus:
        """Searches go by the new model from now on. Raises EmbeddingNotReady, or EmbeddingWorse unless forced."""
        await self._require_changeable(collection_id)
        return await self._command(tenant_id, collection_id, lambda record: record.swapped(force=force))

    async def roll_back(self, tenant_id: str, collection_id: str) -> EmbeddingStatus:
        """Searches go by the model of before again. Raises NothingToRollBack."""
        await self._require_changeable(collection_id)
        return await self._command(tenant_id, collection_id, CollectionEmbedding.rolled_back)

    async def drop(self, tenant_id: str, collection_id: str) -> EmbeddingStatus:
        """Has the other model's vectors removed: the new one's before a swap, the old one's after it. Raises NothingToDrop."""
        await self._require_changeable(collection_id)
        return await self._command(tenant_id, collection_id, CollectionEmbedding.to_drop)

    async def _require_changeable(self, collection_id: str) -> None:
        check_scope_id("collection_id", collection_id)
        await self._rights.require_changeable(collection_id)

    async def _command(
        self, tenant_id: str, collection_id: str, decide: Callable[[CollectionEmbedding], CollectionEmbedding]
    ) -> EmbeddingStatus:
        for _ in range(_MAX_ATTEMPTS):
            stored = await self._store.get(tenant_id, collection_id)
            current = stored.record if stored else None
            if current is None:
                current = CollectionEmbedding(await self._followed_model(tenant_id, collection_id))
            version = stored.version if stored else None
            try:
                self._known.apply(await self._store.put(tenant_id, collection_id, decide(current), version))
            except PointerConflict:
                continue
            return await self._status(tenant_id, collection_id)
        raise Aborted(f"the record of collection {collection_id}'s model changes all the time; try again")

    async def _status(self, tenant_id: str, collection_id: str) -> EmbeddingStatus:
        record = self._known.get(tenant_id, collection_id)
        is_recorded = record is not None
        try:
            available = tuple(await self._models.embedding_models())
        except GroundworkError:
            available = ()
        if record is None:
            record = CollectionEmbedding(self._most_common(tenant_id, collection_id) or next(iter(available), ""))
        placed = self._revisions.placed(tenant_id, collection_id)
        searched: dict[str, Amount] = {}
        for models, amount in placed.items():
            model = searched_model(models, record.model if is_recorded else "")
            searched[model] = searched.get(model, Amount()) + amount
        return EmbeddingStatus(
            collection_id,
            record,
            is_recorded,
            sum(placed.values(), Amount()),
            _amount_in(placed, record.model),
            _amount_in(placed, record.other),
            searched,
            available,
        )

    async def _followed_model(self, tenant_id: str, collection_id: str) -> str:
        """That of a collection without a record: of most of its chunks, or of the installation."""
        return self._most_common(tenant_id, collection_id) or (await self._models.embedding_models())[0]

    def _most_common(self, tenant_id: str, collection_id: str) -> str:
        chunks: Counter[str] = Counter()
        for models, amount in self._revisions.placed(tenant_id, collection_id).items():
            chunks[models[0]] += amount.chunks
        return next((model for model, _ in chunks.most_common() if model), "")


def _amount_in(placed: Mapping[tuple[str, ...], Amount], model: str) -> Amount:
    return sum((amount for models, amount in placed.items() if model and model in models), Amount())
