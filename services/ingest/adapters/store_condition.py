"""Tells the gateway what was found wrong with the stored data. Examples, which name documents, stay with the operator's tools."""

from typing import Any

from groundwork.store.v1 import store_pb2, store_pb2_grpc

from kit.jetstream.condition import StoreCondition


class StoreServicer(store_pb2_grpc.StoreServiceServicer):
    """store.proto."""

    def __init__(self, condition: StoreCondition) -> None:
        self._condition = condition

    async def GetCondition(  # noqa: N802 - the contract's name
        self,
        request: store_pb2.GetConditionRequest,  # noqa: ARG002
        context: Any,  # noqa: ARG002
    ) -> store_pb2.GetConditionResponse:
        """All findings that nobody has accepted yet."""
        return store_pb2.GetConditionResponse(
            findings=[
                store_pb2.Finding(
                    kind=finding.kind,
                    where=finding.where,
                    count=finding.count,
                    repaired=finding.repaired,
                    detail=finding.detail,
                    advice=finding.advice,
                    found_at=finding.found_at,
                )
                for finding in await self._condition.findings()
            ]
        )
