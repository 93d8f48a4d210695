"""What the MCP tools answer with."""

from typing import Any

from pydantic import BaseModel, Field


class FoundItem(BaseModel):
    """A passage that a search found."""

    id: str = Field(description="What `fetch` takes.")
    title: str = Field(description="The document's name, and the headings above the passage.")
    url: str = Field(description="Address of the passage, for a citation.")


class FoundItems(BaseModel):
    """The answer to a search, as assistants' connectors expect it."""

    results: list[FoundItem] = Field(description="Best first.")


class FetchedItem(BaseModel):
    """A passage with its surroundings, as assistants' connectors expect it."""

    id: str = Field(description="The passage.")
    title: str = Field(description="The document's name, and the headings above the passage.")
    text: str = Field(description="The passage with the text before and after it.")
    url: str = Field(description="Address of the passage, for a citation.")
    metadata: dict[str, Any] = Field(description="Its document, collection, page and the document's own fields.")


class AnswerSource(BaseModel):
    """A passage that an answer cites."""

    number: int = Field(description="Its mark in the answer.")
    document_id: str | None = Field(description="Its document.")
    document_name: str = Field(description="Its document's name.")
    page: int | None = Field(default=None, description="Page, from 1.")
    quote: str = Field(description="The words that carry the statement.")
    id: str | None = Field(description="What `fetch` takes.")
    url: str = Field(description="Address of the passage.")


class TableCell(BaseModel):
    """A cell of a table that rests on passages."""

    path: str = Field(description="Its place: `/rows/0/2` is the third column of the first row.")
    sources: list[int] = Field(description="Numbers of the table's sources.")


class AnswerTable(BaseModel):
    """A table that was read out of documents."""

    title: str = Field(description="For people.")
    columns: list[str] = Field(description="Names of the columns.")
    rows: list[list[Any]] = Field(description="Values by column; null where one is missing.")
    cells: list[TableCell] = Field(description="Which sources carry which cells.")
    sources: list[AnswerSource] = Field(description="The cited passages, numbered within the table.")


class ToolAnswer(BaseModel):
    """An answer whose claims were compared with what they cite."""

    run_id: str = Field(description="The run; `research_result` takes it.")
    status: str = Field(
        description="`completed`; `refused`: the documents do not say; `running` or `waiting`: ask `research_result` later; "
        "`failed`, `cancelled` or `timeout`."
    )
    answer: str = Field(description="The text, with citation marks [1], [2] …")
    sources: list[AnswerSource] = Field(description="One a mark.")
    support_status: str | None = Field(
        default=None,
        description="Whether the sources carry the text: `supported`; `similar_wording` (alike in words; its meaning is not "
        "checked); `partial`; `insufficient`.",
    )
    ending: str = Field(default="", description="How a research run ended.")
    conflicts: list[dict[str, Any]] = Field(default_factory=list, description="What the sources disagree about.")
    coverage: dict[str, Any] | None = Field(default=None, description="What the evidence covers. Of a research run.")
    tables: list[AnswerTable] = Field(default_factory=list, description="What `extract` has read.")
    error: str | None = Field(default=None, description="Why there is no answer.")


class ListedCollection(BaseModel):
    """A collection that the caller may read."""

    id: str = Field(description="What the other tools take.")
    name: str = Field(description="For people.")


class ListedCollections(BaseModel):
    """The collections that the caller may read."""

    collections: list[ListedCollection] = Field(description="By id.")


class ListedDocument(BaseModel):
    """A document."""

    id: str = Field(description="Its id; its resource is `groundwork://documents/<id>`.")
    name: str = Field(description="Its name.")
    status: str | None = Field(description="`ready` once it is searched.")
    collection_id: str | None = Field(description="Its collection.")
    metadata: dict[str, str] = Field(default_factory=dict, description="Its own fields.")
    uri: str = Field(description="Its resource.")


class ListedDocuments(BaseModel):
    """A page of documents."""

    documents: list[ListedDocument] = Field(description="Newest first.")
    next_page_token: str | None = Field(default=None, description="For the next page; null on the last.")
