"""`groundwork cluster test`: uploads a document, asks about it and checks the citation. `helm test` runs this in a pod.

The answer must cite the document, whichever language model words it. It works on every gateway, not only on a cluster's.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from cli.client.gateway import Gateway, Json
from cli.display.terminal import harmless
from cli.errors import ApiError, CliError, ServerUnreachable
from cli.running import run

TEXT = (
    "The lighthouse of Vesterhav stands on the northern cliff above the harbour. It was built in 1847 from grey granite. "
    "A stair of 213 steps leads up to its lamp, which is seen for 21 nautical miles. Its keeper writes the weather down "
    "every morning.\n"
)
QUESTION = "How many steps lead up to the lamp of the lighthouse of Vesterhav?"
FACT = "213 steps"
_NAME = "lighthouse.txt"
_POLL_S = 1.0
_SETTLED = frozenset({"ready", "failed", "deleted"})


class TrialFailed(CliError):
    """A step went wrong. The message says which, and where to look."""


def check_installation(
    timeout_s: Annotated[float, typer.Option("--timeout", min=10, help="Seconds for everything together.")] = 300.0,
) -> None:
    """Upload a document, ask about it, check the citation, and delete it again: whether an installation works as a whole.

    Of the gateway at GROUNDWORK_URL, with the API key GROUNDWORK_API_KEY. Exit code 1 when a step fails.
    """

    async def command(gateway: Gateway) -> int:
        try:
            async with asyncio.timeout(timeout_s):
                await Trial(gateway).run()
        except TimeoutError as error:
            raise TrialFailed(
                f"That was not done within {timeout_s:g} s. groundwork cluster doctor says what is wrong."
            ) from error
        return 0

    run(command)


@dataclass
class Trial:
    """One run of the test. Each step says what it found."""

    gateway: Gateway

    async def run(self) -> None:
        """Raises CliError for the first step that fails, having removed what it made."""
        await self._ready()
        async with self._collection() as collection:
            document = await self._uploaded(collection)
            await self._answered(collection, document)
        _say("passed", "It works.")

    async def _ready(self) -> None:
        """Waits while services start."""
        began = time.monotonic()
        reported = ""
        while True:
            try:
                ready, answer = await self.gateway.readiness()
            except ServerUnreachable as error:
                ready, answer = False, {"services": {self.gateway.base_url: {"state": str(error).partition(". ")[0]}}}
            if ready:
                break
            waited_for = _not_serving(answer)
            if waited_for != reported:
                reported = waited_for
                _say("waiting", f"Not ready: {waited_for}.")
            await asyncio.sleep(_POLL_S)
        _say("ok", f"All services are ready{_after(began)}.")

    @asynccontextmanager
    async def _collection(self) -> AsyncIterator[str]:
        """One of its own, so that nobody's documents are among the answers; removed at the end, whatever happened."""
        collection = f"installation-test-{secrets.token_hex(4)}"
        await self.gateway.request("POST", "/v1/collections", json={"id": collection, "name": "Installation test"})
        _say("ok", f"Made the collection {collection}.")
        try:
            yield collection
        finally:
            await self._removed(collection)

    async def _removed(self, collection: str) -> None:
        try:
            await self.gateway.request("DELETE", f"/v1/collections/{quote(collection, safe='')}")
        except CliError as error:
            _say("left", f"{collection} is still there: {error}")
        else:
            _say("ok", f"Removed {collection} and the document in it.")

    async def _uploaded(self, collection: str) -> Json:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / _NAME
            await asyncio.to_thread(file.write_text, TEXT, "utf-8")
            document = await self.gateway.upload(collection, file, _NAME)
        _say("ok", f"Uploaded {_NAME}.")
        while document["status"] not in _SETTLED:
            await asyncio.sleep(_POLL_S)
            document = await self.gateway.request("GET", f"/v1/documents/{quote(document['id'], safe='')}")
        if document["status"] != "ready":
            why = (document.get("error") or {}).get("message") or "no reason given"
            raise TrialFailed(f"The document is {document['status']}: {why}. See the ingest worker's log.")
        _say("ok", f"It is searchable{_after(began)}.")
        return document

    async def _answered(self, collection: str, document: Json) -> None:
        began = time.monotonic()
        answer = await self._asked(collection)
        _say("ok", f"Asked: {QUESTION}{_after(began)}")
        _say("", f"Answer ({answer['method']}): {harmless(' '.join(answer['answer'].split()))}")
        cited = [each for each in answer["citations"] if each["document_id"] == document["id"]]
        if not cited:
            raise TrialFailed(
                "The answer does not cite the document. groundwork cluster doctor shows what is degraded."
            )
        if not any(FACT in each["text"] for each in cited):
            raise TrialFailed(f"The answer cites the document, but not the passage that says {FACT!r}.")
        _say("ok", f"It cites the passage of {_NAME} that says {FACT!r}.")

    async def _asked(self, collection: str) -> Json:
        try:
            return await self.gateway.request(
                "POST", "/v1/qa", json={"question": QUESTION, "collection_ids": [collection]}
            )
        except ApiError as error:
            raise TrialFailed(f"The question was not answered: {error}") from error


def _not_serving(readiness: Json) -> str:
    states = readiness.get("services") or {}
    found = [f"{name} {each['state']}" for name, each in sorted(states.items()) if each["state"] != "serving"]
    return ", ".join(found) or str(readiness.get("status", "unknown"))


def _after(began: float) -> str:
    return f" ({time.monotonic() - began:.1f} s)"


def _say(mark: str, text: str) -> None:
    typer.echo(f"{mark:8}{text}")
