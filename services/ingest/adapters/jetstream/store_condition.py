"""Tells what was found wrong with the stored data: the gateway, and operators in the details of /readyz. Examples, which name
documents, stay with the operator's tools."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import nats.errors
from groundwork.store.v1 import store_pb2, store_pb2_grpc
from nats.js.errors import APIError

from kit.errors import GroundworkError
from kit.jetstream.condition import Finding, StoreCondition
from kit.observability.ops import Trouble

_INTERVAL_S = 15.0


class ConditionReport:
    """What /readyz of this process says of the stored data: it goes on serving what is there."""

    def __init__(self, condition: StoreCondition) -> None:
        self._condition = condition
        self._findings: Sequence[Finding] = ()

    async def run(self) -> None:
        """Looks now and then until cancelled. While the findings cannot be read, what is known goes on being said."""
        while True:
            with suppress(GroundworkError, APIError, nats.errors.Error):
                await self.look()
            await asyncio.sleep(_INTERVAL_S)

    async def look(self) -> None:
        self._findings = await self._condition.findings()

    def troubles(self) -> Sequence[Trouble]:
        """One, if anything was found that nobody has accepted yet."""
        if not self._findings:
            return ()
        found = "; ".join(finding.detail for finding in self._findings)
        return (Trouble("stored data", f"damaged: {found} (groundwork doctor)"),)


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
