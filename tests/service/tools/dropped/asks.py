"""A tool that asks the retriever."""

from typing import Any

from groundwork.retriever.v1 import retriever_pb2 as pb

from services.tools.context import ToolContext
from services.tools.models import Policy

SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {"name": "asks", "description": "Asks.", "parameters": {"type": "object", "properties": {}}},
}
POLICY = Policy(timeout_s=20.0)


async def asks(context: ToolContext) -> str:
    retriever: Any = context.services.retriever
    await retriever._stub.Search(pb.SearchRequest(queries=["?"]), timeout=300)
    return "asked"
