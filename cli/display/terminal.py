"""What a terminal may be given. Answers, passages and names are other people's words: a control sequence in them could clear the
screen, change its title or rewrite what was shown."""

from __future__ import annotations

import re

from rich import markup

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless(text: str) -> str:
    """The text with a replacement character for each control character but tab and line feed; as long as before."""
    return _CONTROLS.sub("\ufffd", text)


def escape(text: str) -> str:
    """The text for rich: harmless, and without markup."""
    return markup.escape(harmless(text))
