"""A process that writes revisions to an index and is SIGKILLed in the middle of it: for the contract of durability."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from services.retriever.adapters.edge.index import EdgeIndex
from services.retriever.adapters.tantivy.index import TantivyIndex
from services.retriever.models import RevisionKey
from tests.unit.retriever.fakes import SPACE, make_batch, make_chunk, write_key

REPOSITORY = Path(__file__).resolve().parents[2]


async def killed_while_writing(engine: str, path: Path, after_commits: int) -> list[str]:
    """Kills the writer right after it has reported the given number of commits; returns the revisions it reported."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.contract.retriever_kill", engine, str(path)),
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    committed = [(await process.stdout.readline()).decode().strip() for _ in range(after_commits)]
    process.kill()
    rest, _ = await process.communicate()
    return committed + rest.decode().split()


async def _write_for_ever(engine: str, path: Path) -> None:
    index: EdgeIndex | TantivyIndex
    if engine == "edge":
        index = await EdgeIndex.open(path)
        await index.prepare(SPACE)
    else:
        index = await TantivyIndex.open(path)
    for number in range(100_000):
        key = RevisionKey("local", "d", f"r{number}")
        chunks = [make_chunk(f"solar panel {number} {ordinal}", ordinal, key=key) for ordinal in range(50)]
        await index.write(write_key(key), make_batch(chunks))
        await index.commit(write_key(key))
        sys.stdout.write(f"{key.revision_id}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_write_for_ever(sys.argv[1], Path(sys.argv[2])))
