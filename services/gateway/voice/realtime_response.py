"""A response of the Realtime API as it grows."""

import secrets

from services.gateway.models import Json
from services.gateway.voice.pieces import Speakable


class RealtimeResponse:
    """One response as it grows."""

    def __init__(self, *, speaks: bool) -> None:
        self.speaks = speaks
        self.id, self.item_id = new_id("resp"), new_id("item")
        self.run_id = ""
        self.text = ""
        self._citations: list[Json] = []

    def add(self, piece: Speakable) -> str:
        """The text that the piece adds: as it is said where it is said, else as it is written."""
        delta = f"{' ' if self.text else ''}{piece.spoken if self.speaks else piece.text}"
        self.text += delta
        self._citations += [each for each in piece.citations if each not in self._citations]
        return delta

    def place(self, of: str = "part") -> Json:
        at = {"response_id": self.id, "output_index": 0}
        return at if of == "item" else {**at, "item_id": self.item_id, "content_index": 0}

    def part(self) -> Json:
        return {"type": "audio", "transcript": self.text} if self.speaks else {"type": "text", "text": self.text}

    def item(self, status: str) -> Json:
        kind = (
            {"type": "output_audio", "transcript": self.text}
            if self.speaks
            else {"type": "output_text", "text": self.text}
        )
        status = status if status in ("completed", "in_progress") else "incomplete"
        content = [kind] if self.text else []
        return {"id": self.item_id, "type": "message", "role": "assistant", "status": status, "content": content}

    def shown(self, status: str, ending: Json | None = None, details: Json | None = None) -> Json:
        return {
            "id": self.id,
            "object": "realtime.response",
            "status": status,
            "status_details": details,
            "output": [self.item(status)] if self.text else [],
            "output_modalities": ["audio" if self.speaks else "text"],
            "usage": None,
            "groundwork": {
                "run_id": self.run_id or None,
                "citations": self._citations,
                "withdrawn": ending["withdrawn"] if ending else [],
            },
        }


def new_id(kind: str) -> str:
    """An id that nothing else has: `item_…`."""
    return f"{kind}_{secrets.token_hex(12)}"
