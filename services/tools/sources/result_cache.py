"""Results of CACHEABLE tools, for a while: a model asks the same thing twice."""

import json
import time
from collections.abc import Callable
from dataclasses import replace

from cachetools import TTLCache

from services.tools.calling.progress import Tell
from services.tools.models import Call, Tool, ToolOutput
from services.tools.sources.source import ToolSource, Wrapper

KEEP_S = 600.0
BYTES_MAX = 16 * 1024 * 1024


class Cached(Wrapper):
    """Keeps outputs by tenant, subject, tool, arguments and what may be read. What quotes something is not kept: it must not
    outlive that."""

    def __init__(self, inside: ToolSource, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(inside)
        self._outputs: TTLCache[str, tuple[ToolOutput, int]] = TTLCache(
            BYTES_MAX, KEEP_S, timer=clock, getsizeof=lambda entry: entry[1]
        )

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        if not tool.cacheable:
            return await super().call(tool, call, tell)
        key = _key(call)
        if (known := self._outputs.get(key)) is not None:
            return replace(known[0], cached=True)
        output = await super().call(tool, call, tell)
        if not output.passages and not output.quotes:
            size_bytes = len(json.dumps(output.content, ensure_ascii=False).encode())
            self._outputs[key] = (output, size_bytes + len(key))
        return output


def _key(call: Call) -> str:
    return json.dumps(
        [call.tenant_id, call.subject, call.name, call.arguments, sorted(call.collection_ids)],
        sort_keys=True,
        ensure_ascii=False,
    )
