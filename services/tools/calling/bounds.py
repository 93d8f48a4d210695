"""How much a call may answer with. An outcome becomes one entry of the run's log, which is a message of NATS (1 MB), and before
that one of gRPC (16 MB). Content and passages together get 600 kB: the rest is room for what JSON adds to the passages."""

import json
from dataclasses import replace
from typing import Any

from services.tools.errors import OutputTooLarge, ToolError
from services.tools.models import ToolOutput

CONTENT_BYTES_MAX = 200_000
"""Of the content as JSON: longer than any model's useful attention for one observation."""
NESTING_MAX = 30
"""Lists and objects within each other: a message nests up to three deep for each, and readers refuse one of more than 100."""
EXACT_INTEGER_MAX = 2**53
"""A message's numbers are doubles. A larger integer, which is an id more often than a count, is passed on as text."""
PASSAGES_MAX = 100
PASSAGES_BYTES_MAX = 400_000
SUMMARY_CHARACTERS_MAX = 300


def bounded(tool_name: str, output: ToolOutput) -> ToolOutput:
    """The output, its content as plain JSON and its summary cut. A person is shown the content itself
    where the tool has no summary of it, and no passages. Raises OutputTooLarge for what cannot be cut without harm, and ToolError
    for content that is not JSON."""
    try:
        encoded = json.dumps(output.content, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(f"{tool_name} answered with something that JSON cannot hold") from error
    if len(encoded) > CONTENT_BYTES_MAX:
        raise OutputTooLarge(
            f"{tool_name} answered with {len(encoded)} bytes; at most {CONTENT_BYTES_MAX} are passed on: ask for less"
        )
    content = json.loads(encoded, parse_int=_exact)
    if _nesting(content) > NESTING_MAX:
        raise OutputTooLarge(
            f"{tool_name} answered with lists and objects more than {NESTING_MAX} deep; ask for a part of it"
        )
    _check_passages(tool_name, output)
    summary = output.summary
    if not summary and not output.passages and content is not None:
        summary = content if isinstance(content, str) else encoded.decode()
    return replace(output, content=content, summary=shortened(summary, SUMMARY_CHARACTERS_MAX))


def shortened(text: str, characters_max: int) -> str:
    """The text, cut with … where it is too long, without what UTF-8 cannot say."""
    text = text.encode(errors="replace").decode()
    return text if len(text) <= characters_max else f"{text[: characters_max - 1]}…"


def _exact(digits: str) -> int | str:
    value = int(digits)
    return value if abs(value) <= EXACT_INTEGER_MAX else digits


def _check_passages(tool_name: str, output: ToolOutput) -> None:
    size_bytes = sum(passage.size_bytes for passage in output.passages)
    if len(output.passages) > PASSAGES_MAX or size_bytes > PASSAGES_BYTES_MAX:
        raise OutputTooLarge(
            f"{tool_name} answered with {len(output.passages)} passages of {size_bytes} bytes; at most {PASSAGES_MAX} of "
            f"{PASSAGES_BYTES_MAX} together are passed on: ask for fewer"
        )


def _nesting(value: Any) -> int:
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]
    return depth
