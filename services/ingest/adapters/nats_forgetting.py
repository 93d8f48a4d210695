"""Has the text of deleted documents forgotten by the services that keep copies of it: the logs of runs quote what they found."""

from collections.abc import Callable
from datetime import datetime

from kit.forgetting import ForgetQueue, ForgetRequest, Source
from kit.jetstream import Nats
from kit.tokens import TokenSigner, TokenVerifier


class NatsForgetting:
    """Forgetting over the queue FORGET."""

    def __init__(self, queue: ForgetQueue, now: Callable[[], datetime]) -> None:
        self._queue = queue
        self._now = now

    @classmethod
    async def open(
        cls, nats: Nats, signer: TokenSigner, verifier: TokenVerifier, now: Callable[[], datetime]
    ) -> "NatsForgetting":
        return cls(await ForgetQueue.open(nats, signer, verifier), now)

    async def forget(self, document_id: str) -> None:
        await self._queue.request(ForgetRequest(Source.document(document_id), self._now()))
