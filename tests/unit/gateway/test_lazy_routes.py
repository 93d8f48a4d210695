"""Routes that are imported at the first request to them."""

import ast
import asyncio
import threading
from pathlib import Path

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, Router

import services.gateway
from services.gateway.serving.lazy_routes import LazyRoutes

GATEWAY = Path(services.gateway.__file__).parent
SCIM = {"routes/identity/scim.py", "routes/identity/scim_answers.py", "schemas/identity/scim.py"} | {
    "schemas/identity/scim_patch.py"
}


async def test_routes_are_loaded_once_by_the_first_requests_to_them_and_in_a_thread() -> None:
    loaded_in: list[threading.Thread] = []

    async def show(request: Request) -> PlainTextResponse:
        return PlainTextResponse(request.path_params["name"])

    def load() -> Router:
        loaded_in.append(threading.current_thread())
        return Router([Route("/late/{name}", show)])

    app = Starlette(routes=[LazyRoutes("/late", load), Route("/other/{name}", show)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        assert (await client.get("/other/a")).text == "a"
        assert (await client.get("/later/a")).status_code == 404
        assert loaded_in == []
        answers = await asyncio.gather(*(client.get(f"/late/{name}") for name in "bcd"))
        assert [each.text for each in answers] == ["b", "c", "d"]
        assert (await client.get("/late/b/c")).status_code == 404
        assert (await client.post("/late/b")).status_code == 405
    assert len(loaded_in) == 1
    assert loaded_in[0] is not threading.main_thread()


def test_nothing_but_scim_imports_its_models_when_the_gateway_starts() -> None:
    importing = {
        str(path.relative_to(GATEWAY))
        for path in GATEWAY.rglob("*.py")
        if any(
            "scim2_models" in name or name.endswith((".scim", ".scim_answers", ".scim_patch"))
            for name in _imports(path)
        )
    }
    assert importing == SCIM


def _imports(path: Path) -> set[str]:
    """What a module imports when it is imported itself."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{each.name}" for each in node.names)}
    return found
