"""Results of CACHEABLE tools, for a while: a model asks the same thing twice."""

import json
import time
from collections.abc import Callable

from cachetools import TTLCache

from services.tools.models import Call, ToolOutput

KEEP_S = 600.0
BYTES_MAX = 16 * 1024 * 1024


class ResultCache:
    """Outputs by tenant, subject, tool, arguments and what may be read. `size` of an output is that of its JSON."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._outputs: TTLCache[str, tuple[ToolOutput, int]] = TTLCache(
            BYTES_MAX, KEEP_S, timer=clock, getsizeof=lambda entry: entry[1]
        )

    def get(self, call: Call) -> ToolOutput | None:
        entry = self._outputs.get(_key(call))
        return entry[0] if entry else None

    def put(self, call: Call, output: ToolOutput, size: int) -> None:
        key = _key(call)
        self._outputs[key] = (output, size + len(key))


def _key(call: Call) -> str:
    return json.dumps(
        [call.tenant_id, call.subject, call.name, call.arguments, sorted(call.collection_ids)],
        sort_keys=True,
        ensure_ascii=False,
    )
