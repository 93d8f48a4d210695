"""What request bodies and parameters are made of. The OpenAPI document is drawn from these types and the same types enforce it, so
that what it says and what is refused cannot differ; a test sends a request on either side of each bound."""

import re
from typing import Annotated, Any, Literal

from fastapi import Header, Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from kit.access.principal import GROUP_PATTERN
from kit.stores.idempotency import KEY_PATTERN


class Pattern:
    """A pattern (ECMA-262) that a text matches: drawn into the schema, enforced, and said in words where it is not met. Where a
    secret may be sent by mistake the text `is_private`: it is not quoted."""

    def __init__(self, pattern: str, advice: str, *, is_private: bool = False) -> None:
        self._pattern = pattern
        self._advice = advice
        self._is_private = is_private
        # In Python `$` also matches before a line break at the end; in JSON Schema it does not.
        self._regex = re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": self._pattern}

    def _checked(self, text: str) -> str:
        if not self._regex.search(text):
            raise ValueError(f"{'this' if self._is_private else repr(text[:80])} {self._advice}")
        return text


_COLLECTION_ID = "[a-z0-9][a-z0-9_-]{0,63}"
_NO_COLLECTION_ID = "is no collection id; use 1 to 64 of a-z, 0-9, '-' and '_', beginning with a letter or digit"
_COLLECTION = Pattern(f"^{_COLLECTION_ID}$", _NO_COLLECTION_ID)
_COLLECTION_OR_EMPTY = Pattern(f"^(?:{_COLLECTION_ID})?$", _NO_COLLECTION_ID)
_DOCUMENT_ID = Pattern("^[0-9a-f]{8,64}$", "is no document id; it is 8 to 64 of 0-9 and a-f")
_SOURCE_ID = Pattern("^[0-9a-f]{8,64}$", "is no source id; it is 8 to 64 of 0-9 and a-f")
_DEAD_LETTER_ID = Pattern("^[0-9a-f]{8,64}$", "is no dead letter id; it is 8 to 64 of 0-9 and a-f")
_RUN_ID = Pattern("^[0-9a-f]{32}$", "is no run id; it is 32 of 0-9 and a-f")
_APPROVAL_ID = Pattern(
    "^[0-9a-f]{32}-[0-9a-f]{12}$", "is no approval id; it is 32 of 0-9 and a-f, those of its run, a '-' and 12 more"
)
_FACT_ID = Pattern("^[0-9a-f]{32}$", "is no fact id; it is 32 of 0-9 and a-f")
_THREAD_ID = Pattern("^[0-9a-f]{12}$", "is no thread id; it is 12 of 0-9 and a-f")
_INDEXED_ID = Pattern("^[A-Za-z0-9][A-Za-z0-9_=-]{0,127}$", "is no id; use 1 to 128 of A-Z, a-z, 0-9, '-', '_', '='")
_TOOL_NAME = Pattern("^[A-Za-z_][A-Za-z0-9_.-]{0,63}$", "is no tool's name; the tools are listed at GET /v1/tools")
_TOOL_SERVER = Pattern("^[a-z][a-z0-9-]{0,23}$", "is no such name; use 1 to 24 of a-z, 0-9 and '-', a letter first")
_SERVER_TOOL = Pattern("^[A-Za-z0-9_.-]{1,64}$", "is no such name; the tools are listed at GET /v1/tool-servers")
_LISTED_NAME = Pattern("^[a-z][a-z0-9_]{0,63}$", "is no such name; agents and modes are listed at GET /v1/agents")
_GROUP = Pattern(
    GROUP_PATTERN, "is no group's name; use 1 to 128 characters, no control character, and no space at either end"
)
_MEMBER = Pattern(
    GROUP_PATTERN, "is no such name; use 1 to 128 characters, no control character, and no space at either end"
)
NOT_BLANK = Pattern(r"\S", "says nothing; write some words")


Guard = Literal["flag", "block"]
GUARD = (
    "What becomes of a question that gives orders to the model, asks for its secrets or asks for harm: `flag` (the run says so) or "
    "`block` (it is refused with `QUESTION_BLOCKED`). Null means the service's setting, which this may only make stricter."
)


MEMORY = (
    "How what is remembered of you is used: `auto` (the model gets a summary and, for messages of more than ten characters, the "
    "facts and notes that fit best), `always` (for every message), `agentic` (a tool may search it), or `off` (nothing is used or "
    "learnt). Null means as the API key says, else the collection, of several the one that shows least, else the service's setting."
)


class RequestBody(BaseModel):
    """A JSON body: unknown members are refused, and so are values of another type, `true` for 1 and "1" for 1 among them."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


def _digits(text: str) -> str:
    if not re.fullmatch("-?[0-9]+", text):
        raise ValueError(f"{text[:80]!r} is no whole number; write it in digits")
    return text


def _true_or_false(text: object) -> object:
    if isinstance(text, str):
        if text not in ("true", "false"):
            raise ValueError(f"{text[:80]!r} is neither; write true or false")
        return text == "true"
    return text


TRUE_OR_FALSE = BeforeValidator(_true_or_false)
"""For a flag in a query: Python would also take yes, on and 1 for true."""

CollectionId = Annotated[str, _COLLECTION]
"""Becomes part of keys and index filters."""

CollectionFilter = Annotated[str, _COLLECTION_OR_EMPTY]
"""A collection, or empty for all."""

CollectionIds = Annotated[list[CollectionId], Field(min_length=1, max_length=64, description="Where to look.")]

GroupName = Annotated[str, _GROUP]
"""As the identity provider writes it."""

MemberName = Annotated[str, _MEMBER]
"""Of a subject or a group."""

IndexedId = Annotated[str, _INDEXED_ID]

DocumentId = Annotated[str, _DOCUMENT_ID]

DocumentIds = Annotated[list[IndexedId], Field(max_length=1000, description="Only these; empty means all.")]

ListedName = Annotated[str, _LISTED_NAME]
"""Of an agent or a mode. Which there are is known by the orchestrator alone."""

ToolName = Annotated[str, _TOOL_NAME]

Question = Annotated[str, Field(min_length=1, max_length=8000), NOT_BLANK]
"""A question or a query in the user's words."""

Title = Annotated[str, Field(min_length=1, max_length=200, description="For people."), NOT_BLANK]

WHOLE = BeforeValidator(lambda value: int(value) if _is_whole(value) else value)
"""For whole numbers, behind their bounds: 5.0 is one in JSON."""

DIGITS = BeforeValidator(_digits)
"""For whole numbers in a query, behind their bounds: Python would also take 1_0, +1 and 1.0 for one."""

Evidence = Annotated[
    int, Field(ge=0, le=200, description="Evidence passages wanted; 0 means the service's setting."), WHOLE
]

IdempotencyKey = Annotated[
    Annotated[
        str, Pattern(KEY_PATTERN, "is no idempotency key; use 1 to 255 visible ASCII characters, a UUID for example")
    ]
    | None,
    Header(
        description="Your name for this request, a UUID for example, kept for a day. Sent again with the same key and content, it "
        "starts nothing twice: the answer is that of the first. Another content is refused with 409 and `IDEMPOTENCY_KEY_REUSED`, "
        "and while the first is in hand with 409, `IDEMPOTENCY_KEY_IN_FLIGHT` and Retry-After."
    ),
]
IfMatch = Annotated[
    Annotated[
        str, Pattern(r'^"?[0-9a-fA-F]{64}"?$', "is no sha256; use 64 hexadecimal digits, as the document has them")
    ]
    | None,
    Header(
        description="The sha256 of the version that this one replaces. Where the document has another by then, or there is none of "
        "its name, the answer is 412 and `DOCUMENT_CHANGED`, and nothing is stored."
    ),
]
IfAccess = Annotated[
    Annotated[str, Pattern(r'^"[0-9a-f]{32}"$', "is no ETag of a list; send the ETag header of its last answer")]
    | None,
    Header(
        description="The ETag of the list as you have read it. Where somebody else has changed the list since, the answer is 412 "
        "with `ACCESS_CHANGED`, and nothing is changed: read it again, and make your change to the list as it is now.",
    ),
]
IfNoneMatch = Annotated[
    Annotated[str, Pattern(r"^\*$", "is not *; nothing else is taken here")] | None,
    Header(
        description="`*`: only where the collection has no document of this name; otherwise the answer is 412 and "
        "`DOCUMENT_CHANGED`."
    ),
]
ThreadId = Annotated[str, _THREAD_ID]

RunId = Annotated[str, _RUN_ID]

FactId = Annotated[str, _FACT_ID]

CollectionPath = Annotated[str, _COLLECTION, Path(description="The collection's id.")]
DocumentPath = Annotated[str, _DOCUMENT_ID, Path(description="The document's id.")]
VectorStorePath = Annotated[str, _COLLECTION, Path(description="The vector store's id: that of a collection.")]
FilePath = Annotated[str, _DOCUMENT_ID, Path(description="The file's id: that of a document.")]
SourcePath = Annotated[str, _SOURCE_ID, Path(description="The source's id.")]
ToolServerPath = Annotated[str, _TOOL_SERVER, Path(description="The server's name.")]
ServerToolPath = Annotated[str, _SERVER_TOOL, Path(description="The tool's name at its server.")]
AgentPath = Annotated[str, _LISTED_NAME, Path(description="Agent.")]
RunPath = Annotated[str, _RUN_ID, Path(description="The run's id.")]
ApprovalPath = Annotated[str, _APPROVAL_ID, Path(description="The approval's id.")]
QuizPath = Annotated[str, _RUN_ID, Path(description="The quiz's id: the run that made it.")]
FactPath = Annotated[str, _FACT_ID, Path(description="The fact's id.")]
ThreadPath = Annotated[str, _THREAD_ID, Path(description="The thread's id.")]
DeadLetterPath = Annotated[str, _DEAD_LETTER_ID, Path(description="The dead letter's id.")]
ChunkPath = Annotated[str, _INDEXED_ID, Path(description="The passage's id.")]

OnlyCollection = Annotated[str, _COLLECTION_OR_EMPTY, Query(description="Only this collection; empty means all.")]
PageSize = Annotated[int, Query(ge=1, le=1000, description="At most this many items."), DIGITS]
PageToken = Annotated[str, Query(max_length=1024, description="`next_page_token` of the page before.")]
After = Annotated[CollectionId | None, Query(description="The last item of the page before.")]
AfterFile = Annotated[DocumentId | None, Query(description="The last item of the page before.")]


def etag_in(if_match: str | None) -> str:
    """The etag of an If-Match header, without its quotes; empty where there is none."""
    return (if_match or "").strip('"')
