"""How a chat uses what is remembered of its user. The request, the API key, the collection and the service may each name a mode."""

from typing import Literal, get_args

MemoryMode = Literal["auto", "agentic", "always", "off"]
AUTO: MemoryMode = "auto"
"""The model gets a summary and, for messages of more than ten characters, the facts and notes that fit best."""
AGENTIC: MemoryMode = "agentic"
"""The model may search with a tool."""
ALWAYS: MemoryMode = "always"
"""The model gets the summary, facts and notes for every message."""
OFF: MemoryMode = "off"
"""Nothing is used, and nothing is learnt."""

MEMORY_MODES: tuple[MemoryMode, ...] = get_args(MemoryMode)
STRICTEST_FIRST = (OFF, AGENTIC, AUTO, ALWAYS)
"""The modes from the one that shows the model least."""
