"""The embedding model of a collection, between the contract's messages and the domain."""

from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.retriever.v1 import retriever_pb2 as pb

from services.retriever.model_change.collection_embedding import DEFAULT_MARGIN, CollectionEmbedding, Stage
from services.retriever.model_change.embedding_changes import EmbeddingStatus
from services.retriever.model_change.evaluation import Comparison, Evaluation, Quality, Question
from services.retriever.models import Amount

_STAGES = {
    Stage.SETTLED: pb.MODEL_STAGE_SETTLED,
    Stage.BUILDING: pb.MODEL_STAGE_BUILDING,
    Stage.EVALUATING: pb.MODEL_STAGE_EVALUATING,
    Stage.READY: pb.MODEL_STAGE_READY,
    Stage.SWAPPED: pb.MODEL_STAGE_SWAPPED,
    Stage.DROPPING: pb.MODEL_STAGE_DROPPING,
    Stage.UNKNOWN: pb.MODEL_STAGE_UNSPECIFIED,
}


def questions(messages: Sequence[pb.ModelQuestion]) -> list[Question]:
    return [Question(each.text, tuple(each.document_ids)) for each in messages]


def margin(request: pb.ChangeCollectionModelRequest | pb.EvaluateCollectionModelRequest) -> float:
    return request.margin if request.HasField("margin") else DEFAULT_MARGIN


def model_message(status: EmbeddingStatus) -> pb.CollectionModel:
    record = status.record
    message = pb.CollectionModel(
        collection_id=status.collection_id,
        model=record.model,
        is_chosen=status.is_recorded,
        stage=_STAGES[record.stage],
        other_model=record.other,
        whole=_amount(status.whole),
        in_model=_amount(status.in_model),
        in_other_model=_amount(status.in_other),
        searched={model: _amount(amount) for model, amount in status.searched.items()},
        margin=record.margin,
        problem=record.problem,
        available_models=status.available,
    )
    if record.evaluation is not None:
        message.evaluation.CopyFrom(_evaluation(record.evaluation, record))
    if record.began_at_ms:
        message.began_at.FromMilliseconds(record.began_at_ms)
    return message


def _evaluation(evaluation: Evaluation, record: CollectionEmbedding) -> pb.ModelEvaluation:
    evaluated_at = Timestamp()
    evaluated_at.FromMilliseconds(evaluation.at_ms)
    return pb.ModelEvaluation(
        before_model=evaluation.before,
        after_model=evaluation.after,
        question_count=evaluation.question_count,
        is_made=evaluation.are_made,
        vectors=_comparison(evaluation.vectors),
        both=_comparison(evaluation.both),
        evaluated_at=evaluated_at,
        worse=evaluation.worse(record.margin),
    )


def _comparison(comparison: Comparison) -> pb.ModelComparison:
    return pb.ModelComparison(before=_quality(comparison.before), after=_quality(comparison.after))


def _quality(quality: Quality) -> pb.ModelQuality:
    return pb.ModelQuality(ndcg_at_10=quality.ndcg_at_10, mrr_at_10=quality.mrr_at_10)


def _amount(amount: Amount) -> pb.ModelAmount:
    return pb.ModelAmount(document_count=amount.documents, chunk_count=amount.chunks)
