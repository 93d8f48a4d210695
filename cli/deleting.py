"""Deleting things by their ids."""

from collections.abc import Sequence
from urllib.parse import quote

from cli.gateway import Gateway
from cli.output import Output


async def delete_each(gateway: Gateway, path: str, ids: Sequence[str], output: Output) -> int:
    """Deletes `path`/id for each id, and says so. Returns the exit code."""
    for each in ids:
        await gateway.request("DELETE", f"{path}/{quote(each, safe='')}")
        if not output.as_json:
            output.out.print(f"deleted {each}")
    if output.as_json:
        output.json({"deleted": list(ids)})
    return 0
