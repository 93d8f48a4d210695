"""What a response was asked, as the items of its input."""

from collections.abc import Iterator

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.models import Json


def input_items(run: pb.Run) -> list[Json]:
    """The items, oldest first. System messages are none: they are kept as the instructions of the run."""
    parts = [part for message in run.input for part in _parts(message)]
    return [
        {"id": f"{prefix}_{run.run_id}_in{place}", "status": "completed", **part}
        for place, (prefix, part) in enumerate(parts)
    ]


def _parts(message: pb.HistoryMessage) -> Iterator[tuple[str, Json]]:
    if message.role == "tool":
        yield "fco", {"type": "function_call_output", "call_id": message.call_id, "output": message.text}
        return
    if message.text or not message.calls:
        text: Json = {"type": "input_text", "text": message.text}
        if message.role == "assistant":
            text = {"type": "output_text", "text": message.text, "annotations": [], "logprobs": []}
        yield "msg", {"type": "message", "role": message.role, "content": [text]}
    for call in message.calls:
        yield (
            "fc",
            {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
        )
