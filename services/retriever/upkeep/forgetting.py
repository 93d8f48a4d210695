"""Nothing computed of a text outlasts its chunk: before chunks are removed, the model server forgets the vectors of their tokens.

The chunks themselves are the list of what is still to be forgotten. As long as the model server is away they stay, invisible, and
the reconciler has them removed later.
"""

from collections.abc import Awaitable, Callable

from services.retriever.indexes.chunk_encoding import readable
from services.retriever.models import RevisionKey
from services.retriever.ports import LexicalIndex, TextForgetter
from services.retriever.revisions.revision_map import RevisionMap

_CHUNKS_PER_READ = 128


class ForgettingRemoval:
    """ChunkRemoval from the lexical index, with what the model server keeps of the texts."""

    def __init__(self, lexical: LexicalIndex, revisions: RevisionMap, texts: TextForgetter) -> None:
        self._lexical = lexical
        self._revisions = revisions
        self._texts = texts

    async def delete_revision(self, key: RevisionKey) -> None:
        """Texts that the document's active revision still has are not forgotten. Raises what either of both raises."""
        gone = await self._content_hashes(key)
        pointer = self._revisions.get(key.tenant_id, key.document_id)
        if gone and pointer is not None and pointer.revision_id and pointer.revision_id != key.revision_id:
            gone -= await self._content_hashes(RevisionKey(key.tenant_id, key.document_id, pointer.revision_id))
        await self._forget_around(key.tenant_id, gone, lambda: self._lexical.delete_revision(key))

    async def delete_document(self, tenant_id: str, document_id: str) -> None:
        """Raises what either of both raises."""
        gone: set[str] = set()
        for key in await self._lexical.revisions(tenant_id, document_id):
            gone |= await self._content_hashes(key)
        await self._forget_around(tenant_id, gone, lambda: self._lexical.delete_document(tenant_id, document_id))

    async def _forget_around(self, tenant_id: str, gone: set[str], remove: Callable[[], Awaitable[None]]) -> None:
        """Before the removal, so that what is interrupted is done again; and after it, for a search that was under way when the
        chunks were hidden may have had them read again."""
        if gone:
            await self._texts.forget(tenant_id, sorted(gone))
        await remove()
        if gone:
            await self._texts.forget(tenant_id, sorted(gone))

    async def _content_hashes(self, key: RevisionKey) -> set[str]:
        hashes: set[str] = set()
        count = await self._lexical.count(key)
        for start in range(0, count, _CHUNKS_PER_READ):
            ordinals = range(start, min(start + _CHUNKS_PER_READ, count))
            stored = await self._lexical.fetch_ordinals(key, ordinals)
            hashes |= {chunk.content_hash for _, chunk in readable(stored) if chunk.content_hash}
        return hashes
