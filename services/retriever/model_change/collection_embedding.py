"""The embedding model of a collection, and the change from one to another: what is recorded, and what may follow what.

    stage        the model is searched, and the other one …          command or event → next stage
    settled      there is none                                       change → building
    building     is being built beside it                            built → evaluating, drop → dropping
    evaluating   is built and being compared                         evaluated → ready, drop → dropping
    ready        is built and compared                               swap → swapped, evaluate → evaluating, drop → dropping
    swapped      was searched before, and is kept                    roll back → ready, drop → dropping
    dropping     is being removed                                    dropped → settled

From `building` to `swapped` every document lies in both spaces, also one that comes meanwhile. A swap and a rollback exchange the
two names in one record, and nothing else (docs/adr/0018).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from services.retriever.errors import (
    EmbeddingChangeUnderWay,
    EmbeddingNotReady,
    EmbeddingUnchanged,
    EmbeddingWorse,
    NothingToDrop,
    NothingToRollBack,
)
from services.retriever.model_change.evaluation import Evaluation, Question

DEFAULT_MARGIN = 0.02
"""By which the new model's nDCG@10 may be below the old one's: with a hundred questions less is chance."""


class Stage(StrEnum):
    """How far a change has come."""

    SETTLED = "settled"
    BUILDING = "building"
    EVALUATING = "evaluating"
    READY = "ready"
    SWAPPED = "swapped"
    DROPPING = "dropping"
    UNKNOWN = "unknown"
    """One that only a newer version knows: its word is among the newer fields."""


@dataclass(frozen=True)
class CollectionEmbedding:
    """What is recorded of a collection. `model` is what its documents are searched with; `problem` what keeps the change from going
    on at the moment, for a person. `newer_fields` as Pointer."""

    model: str
    other: str = ""
    stage: Stage = Stage.SETTLED
    began_at_ms: int = 0
    questions: tuple[Question, ...] = ()
    margin: float = DEFAULT_MARGIN
    evaluation: Evaluation | None = None
    problem: str = ""
    newer_fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The models in whose spaces every document is to lie."""
        return (self.model, self.other) if self.other and self.stage is not Stage.DROPPING else (self.model,)

    def changed(self, model: str, questions: tuple[Question, ...], margin: float, now_ms: int) -> "CollectionEmbedding":
        """A change to `model` has begun. Raises EmbeddingUnchanged or EmbeddingChangeUnderWay."""
        if self.stage is not Stage.SETTLED:
            raise EmbeddingChangeUnderWay(
                f"a change of this collection's embedding model is under way (stage {self.stage.value}, models {self.model} and "
                f"{self.other}); finish it first: drop {self.other}, or wait until it is dropped",
                stage=self.stage.value,
            )
        if model == self.model:
            raise EmbeddingUnchanged(f"this collection is searched with {model} already; name another model")
        return CollectionEmbedding(
            self.model,
            model,
            Stage.BUILDING,
            now_ms,
            questions,
            margin,
            newer_fields=self.newer_fields,
        )

    def built(self) -> "CollectionEmbedding":
        """Every document that can be is in both spaces."""
        return replace(self, stage=Stage.EVALUATING, problem="") if self.stage is Stage.BUILDING else self

    def evaluated(self, evaluation: Evaluation) -> "CollectionEmbedding":
        """Both models have been compared."""
        if self.stage is not Stage.EVALUATING:
            return self
        return replace(self, stage=Stage.READY, evaluation=evaluation, problem="")

    def to_evaluate(self, questions: tuple[Question, ...], margin: float) -> "CollectionEmbedding":
        """They are to be compared again, on these questions. Raises EmbeddingNotReady."""
        if self.stage is not Stage.READY:
            raise EmbeddingNotReady(self._not_ready("to be compared"), stage=self.stage.value)
        return replace(self, stage=Stage.EVALUATING, questions=questions, margin=margin, evaluation=None, problem="")

    def swapped(self, *, force: bool) -> "CollectionEmbedding":
        """The other model is searched from now on, and this one kept. Raises EmbeddingNotReady, or EmbeddingWorse unless forced."""
        if self.stage is not Stage.READY:
            raise EmbeddingNotReady(self._not_ready("to swap"), stage=self.stage.value)
        worse = self.evaluation.worse(self.margin) if self.evaluation else ()
        if worse and not force:
            raise EmbeddingWorse(
                f"{self.other} finds less than {self.model} in this collection ({'; '.join(worse)}), by more than the margin of "
                f"{self.margin:g}; evaluate it on questions of your own, drop it, or swap by force"
            )
        return replace(self, model=self.other, other=self.model, stage=Stage.SWAPPED, problem="")

    def rolled_back(self) -> "CollectionEmbedding":
        """The model of before is searched again, and the new one is ready as it was. Raises NothingToRollBack."""
        if self.stage is not Stage.SWAPPED:
            raise NothingToRollBack(
                f"this collection has no model to go back to (stage {self.stage.value}); only a swap can be rolled back, until the "
                "old model is dropped",
                stage=self.stage.value,
            )
        return replace(self, model=self.other, other=self.model, stage=Stage.READY, problem="")

    def to_drop(self) -> "CollectionEmbedding":
        """The other model goes, searched or not until now. Raises NothingToDrop."""
        if not self.other:
            raise NothingToDrop(f"this collection has no other model than {self.model}; there is nothing to drop")
        return replace(self, stage=Stage.DROPPING, problem="")

    def dropped(self) -> "CollectionEmbedding":
        """Nothing is left in the other's space."""
        if self.stage is not Stage.DROPPING:
            return self
        return CollectionEmbedding(self.model, newer_fields=self.newer_fields)

    def _not_ready(self, what_for: str) -> str:
        if self.stage is Stage.SETTLED:
            return (
                f"there is nothing {what_for}: no other model is being built for this collection; begin a change first"
            )
        return f"there is nothing {what_for} yet or any more: the change is at stage {self.stage.value}"
