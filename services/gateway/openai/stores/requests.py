"""Requests about vector stores and embeddings in the shape of OpenAI's API."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from groundwork.retriever.v1 import retriever_pb2
from pydantic import ConfigDict, Field

from services.gateway.errors import UnsupportedParameter
from services.gateway.openai.messages import OpenAiBody
from services.gateway.schemas.fields import DIGITS, NOT_BLANK, WHOLE, DocumentId, Pattern, Question, Title

MOST_FILES = 500
"""Files that are added in one request."""
_BATCH = Pattern("^vsfb_[0-9a-f]{32}$", "is no file batch id; it is vsfb_ and 32 of 0-9 and a-f")

BatchPath = Annotated[str, _BATCH, Path(description="The batch's id.")]
Limit = Annotated[int, Query(ge=1, le=100, description="At most this many items."), DIGITS]
Order = Annotated[Literal["asc", "desc"], Query(description="By age: `desc` is newest first.")]
State = Annotated[
    Literal["in_progress", "completed", "failed", "cancelled"] | None, Query(description="Only files in this state.")
]
Attribute = Annotated[str, Field(max_length=512)] | bool | float
Attributes = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=64)], Attribute],
    Field(max_length=16, description="Filterable fields. Numbers and booleans come back as text."),
]


def metadata(attributes: Mapping[str, Attribute] | None) -> dict[str, str]:
    """Attributes as metadata of a document, whose values are text."""
    return {name: _word(value) for name, value in (attributes or {}).items()}


def _word(value: str | bool | float) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if float(value).is_integer() else repr(value)


class NewVectorStore(OpenAiBody):
    """A vector store to make."""

    model_config = ConfigDict(json_schema_extra={"example": {"name": "Contracts"}})

    name: Title | None = Field(default=None, description="For people.")
    file_ids: list[DocumentId] | None = Field(default=None, max_length=MOST_FILES, description="Files to add at once.")


class ChangedVectorStore(OpenAiBody):
    """What is to be changed of a vector store."""

    model_config = ConfigDict(json_schema_extra={"example": {"name": "Contracts"}})

    name: Title | None = Field(default=None, description="For people; null means as it is.")


class NewStoreFile(OpenAiBody):
    """A file to add to a vector store."""

    model_config = ConfigDict(json_schema_extra={"example": {"file_id": "d0000001"}})

    file_id: DocumentId = Field(description="The file, of POST /v1/files, or any document.")
    attributes: Attributes | None = Field(default=None, description="Filterable fields, at most 16.")


class ChangedStoreFile(OpenAiBody):
    """The attributes that a file of a vector store has from now on."""

    model_config = ConfigDict(json_schema_extra={"example": {"attributes": {"year": "2026"}}})

    attributes: Attributes | None = Field(description="Instead of all that it had; null for none.")


class NewFileBatch(OpenAiBody):
    """Files to add to a vector store together. One of `file_ids` and `files` is needed."""

    model_config = ConfigDict(json_schema_extra={"example": {"file_ids": ["d0000001"]}})

    file_ids: list[DocumentId] | None = Field(default=None, max_length=MOST_FILES, description="The files.")
    files: list[NewStoreFile] | None = Field(
        default=None, max_length=MOST_FILES, description="The files, each with attributes of its own."
    )
    attributes: Attributes | None = Field(default=None, description="Of all of `file_ids`.")

    def chosen(self) -> list[NewStoreFile]:
        """The files. Raises UnsupportedParameter where none are named, or in both ways."""
        if bool(self.file_ids) == bool(self.files):
            raise UnsupportedParameter("name the files in `file_ids` or in `files`, not in both", field="file_ids")
        return self.files or [NewStoreFile(file_id=each, attributes=self.attributes) for each in self.file_ids or ()]


class RankingOptions(OpenAiBody):
    """How hits are chosen."""

    score_threshold: float | None = Field(default=None, ge=0, le=1, description="Least similarity (cosine) of a hit.")


class StoreSearch(OpenAiBody):
    """A search in a vector store."""

    model_config = ConfigDict(json_schema_extra={"example": {"query": "notice period"}})

    query: Question | Annotated[list[Question], Field(min_length=1, max_length=8)] = Field(
        description="What is looked for: one query, or several whose hits are fused."
    )
    filters: dict[str, Any] | None = Field(
        default=None, description="`eq`, `in`, `and` of them, and `or` of conditions on one field; others are refused."
    )
    max_num_results: Annotated[int, Field(ge=1, le=50), WHOLE] = Field(default=10, description="At most this many.")
    ranking_options: RankingOptions | None = Field(default=None, description="How hits are chosen.")

    @property
    def queries(self) -> list[str]:
        """What is looked for."""
        return [self.query] if isinstance(self.query, str) else self.query


def search_filter(filters: dict[str, Any] | None) -> retriever_pb2.Filter | None:
    """The filter over attributes. Raises UnsupportedParameter for what the index cannot do."""
    if not filters:
        return None
    return retriever_pb2.Filter(metadata=_conditions(filters))


def _conditions(filters: Any, depth: int = 0) -> list[retriever_pb2.MetadataCondition]:
    kind = filters.get("type") if isinstance(filters, dict) and depth < 8 else None
    if kind in ("eq", "in") and isinstance(filters.get("key"), str):
        given = filters.get("value")
        values = given if kind == "in" and isinstance(given, list) else [given]
        if all(isinstance(each, str | bool | int | float) for each in values) and 0 < len(values) <= 100:
            return [retriever_pb2.MetadataCondition(key=filters["key"], values=[_word(each) for each in values])]
    inner = filters.get("filters") if isinstance(filters, dict) else None
    if kind in ("and", "or") and isinstance(inner, list) and inner:
        conditions = [each for one in inner for each in _conditions(one, depth + 1)]
        if kind == "and":
            return conditions
        if len({each.key for each in conditions}) == 1 and all(one.get("type") in ("eq", "in") for one in inner):
            values = [value for each in conditions for value in each.values]
            return [retriever_pb2.MetadataCondition(key=conditions[0].key, values=values)]
    raise UnsupportedParameter(
        "attributes are compared for equality: use `eq`, `in`, `and` of them, or `or` of conditions on one key",
        field="filters",
    )


class EmbeddingsRequest(OpenAiBody):
    """Texts to embed."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"model": "groundwork/embedding", "input": "Notice period"}}
    )

    model: str = Field(
        min_length=1, max_length=200, description="`groundwork/embedding`, or an embedding model of GET /v1/models."
    )
    input: (
        Annotated[str, Field(min_length=1, max_length=100_000), NOT_BLANK]
        | Annotated[
            list[Annotated[str, Field(min_length=1, max_length=100_000), NOT_BLANK]],
            Field(min_length=1, max_length=2048),
        ]
        | Annotated[list[Any], Field(min_length=1, max_length=2048)]
    ) = Field(description="A text, or texts. Tokens in the place of texts are refused.")
    encoding_format: Literal["float", "base64"] = Field(default="float", description="How vectors are written.")
    dimensions: Annotated[int, Field(ge=1, le=100_000), WHOLE] | None = Field(
        default=None, description="The model's own number of dimensions; any other number is refused."
    )
    input_type: Literal["query", "passage"] = Field(
        default="passage",
        description="Groundwork's own: what the texts are to a search. Some models embed the two differently.",
    )

    @property
    def texts(self) -> list[str]:
        """The texts. Raises UnsupportedParameter for tokens."""
        texts = [self.input] if isinstance(self.input, str) else self.input
        if not all(isinstance(each, str) and each.strip() for each in texts):
            raise UnsupportedParameter(
                "`input` has tokens, or an empty text; send texts, for each model has tokens of its own (in LangChain: "
                "check_embedding_ctx_length=False)",
                field="input",
            )
        return texts
