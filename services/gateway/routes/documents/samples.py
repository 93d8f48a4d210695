"""`/samples/<file>`: the sample documents, and in samples.json their list, the collection that they belong to and questions
that they answer. The console's button and `groundwork demo` load them by the upload that everybody uses."""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from services.gateway.routes.console import Asset, answer, asset_of

_LIST = "samples.json"
_POLICY = "sandbox; default-src 'none'"
"""One of them is a web page, which is not to run as ours."""


def load_samples(directory: Path) -> dict[str, Asset]:
    """Every sample by its name, as bytes to be saved, and the list."""
    types = {_LIST: "application/json"}
    return {
        path.name: asset_of(path, types.get(path.name, "application/octet-stream"))
        for path in sorted(directory.iterdir())
    }


def samples_router(samples: dict[str, Asset]) -> APIRouter:
    """Files as the console's are, hence for everybody and not in the API's document."""
    router = APIRouter(include_in_schema=False)

    @router.api_route("/samples/{name}", methods=["GET", "HEAD"])
    async def sample(name: str, request: Request) -> Response:
        if name not in samples:
            raise HTTPException(404)
        return answer(samples[name], request, _POLICY)

    return router
