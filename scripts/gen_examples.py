"""Writes the examples in docs/api.md from the messages in run_example.json: a run's events, the JSON answer that they add up to,
and events of the other kinds. The gateway's own encoding makes them. With --check it only says whether the page is out of date."""

import json
import re
import sys
from pathlib import Path

from google.protobuf.json_format import ParseDict
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.vocabulary.run_fold import RunFold
from services.gateway.schemas.conversations.runs import QaResponse
from services.gateway.streams.events import RunEvent, run_event

_ROOT = Path(__file__).resolve().parent.parent
_PAGE = _ROOT / "docs" / "api.md"
_MESSAGES = Path(__file__).with_name("run_example.json")


def _events(messages: list[dict[str, object]]) -> list[RunEvent]:
    return [run_event(ParseDict(message, pb.RunEvent())) for message in messages]


def _shown(events: list[RunEvent]) -> str:
    lines = [
        f"id: {each.data['seq']}\nevent: {each.kind}\ndata: {json.dumps(each.data, ensure_ascii=False)}\n"
        for each in events
    ]
    return "```text\n" + "\n".join(lines) + "```"


def _answer(events: list[RunEvent]) -> str:
    fold = RunFold()
    for event in events:
        fold.add(event.kind, event.data)
    body = QaResponse.model_validate(fold.result()).model_dump(mode="json")
    return f"```json\n{json.dumps(body, ensure_ascii=False, indent=1)}\n```"


def page(text: str) -> str:
    """The page with its examples made anew."""
    messages = json.loads(_MESSAGES.read_text("utf-8"))
    answered = _events(messages["answered"])
    made = {"answer": _answer(answered), "run": _shown(answered), "others": _shown(_events(messages["others"]))}
    for name, block in made.items():
        whole = f"<!-- example {name} -->\n{block}\n<!-- /example -->"
        text = re.sub(
            rf"<!-- example {name} -->.*?<!-- /example -->", lambda _, whole=whole: whole, text, flags=re.DOTALL
        )
    return text


def main(*, check: bool) -> int:
    text = _PAGE.read_text("utf-8")
    made = page(text)
    if check and made != text:
        print("docs/api.md is out of date: run make gen and commit it", file=sys.stderr)
        return 1
    if made != text:
        _PAGE.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
