"""When two calls are the same: by the tool's name and its key arguments."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from services.orchestrator.log.events import EffectClass
from services.orchestrator.models import Tool

_SPACE = re.compile(r"\s+")


def fingerprint(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """SHA-256, hex, of the tool's name and its key arguments, or of all arguments where it names none.

    Read-only calls are compared as a reader would: letter case, the width and kind of whitespace, Unicode forms and the order of
    keys make no difference, nor does an argument that is null, which says the same as one that is left out. The worst that comes
    of a false match is that a call is not repeated whose result stands above. Calls with an effect are compared exactly, except
    for the order of keys: "Bob" and "bob" may be two recipients.
    """
    keys = tool.key_arguments or sorted(arguments)
    chosen = {key: arguments[key] for key in keys if arguments.get(key) is not None}
    if tool.effect is EffectClass.NONE:
        chosen = _folded(chosen)
    text = json.dumps([tool.name, chosen], sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _folded(value: Any) -> Any:
    match value:
        case str():
            return _SPACE.sub(" ", unicodedata.normalize("NFKC", value)).strip().casefold()
        case bool():
            return value
        case float() if value.is_integer():
            return int(value)
        case Mapping():
            return {key: _folded(each) for key, each in value.items() if each is not None}
        case list() | tuple():
            return [_folded(each) for each in value]
        case _:
            return value
