"""Settings of the memory service."""

from pydantic import Field

from kit.process.settings import Identifier, LocalUserSettings, MessageStoreSettings, SigningServiceSettings
from kit.stores.collections import NOTES_ID


class MemorySettings(MessageStoreSettings, LocalUserSettings, SigningServiceSettings):
    """Where its state lives, and whether people are remembered."""

    memory_enabled: bool = True
    """Whether facts are learnt from what people say of themselves, and used. Off: nothing is learnt, listed or shown to a model.
    What was learnt stays until it is forgotten, and threads are kept in any case."""

    retriever_address: str = "127.0.0.1:7002"
    """host:port of the retriever, whose index holds what is remembered."""

    memory_search_timeout_s: float = Field(default=1.0, gt=0)
    """Longest wait for the index of memories; after it facts are looked up by words alone. It answers in 10 ms."""

    tools_notes_collection: Identifier = NOTES_ID
    """Collection of notes, as GROUNDWORK_TOOLS_NOTES_COLLECTION of the tools service says it. Each user has one of their own."""

    memory_index_timeout_s: float = Field(default=20.0, gt=0)
    """Longest wait for texts to be put into that index, or removed, behind whatever is being written there."""
