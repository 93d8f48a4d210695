"""Tokens of texts, as exactly as can be had: by the server's tokenizer, by a tokenizer file, else by an estimate from above."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from kit.llm.endpoint.streaming.unicode import well_formed
from kit.llm.endpoint.tokens.estimate import estimate_tokens

_REMEMBERED = 8192


class TokenCounter(Protocol):
    """Something that knows a model's vocabulary."""

    async def count(self, texts: Sequence[str]) -> Sequence[int | None]:
        """Tokens of each text, without what a chat template adds; None where it cannot say now."""
        ...


class FileCounter:
    """A `tokenizer.json`, read at the first count. Counting runs in a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokenizer: Any = None
        self._loading = asyncio.Lock()

    async def count(self, texts: Sequence[str]) -> Sequence[int | None]:
        async with self._loading:
            if self._tokenizer is None:
                self._tokenizer = await asyncio.to_thread(_load, self._path)
        encodings = await asyncio.to_thread(self._tokenizer.encode_batch, list(texts), add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings]


class CountedTexts:
    """Remembers what was counted, and estimates where nobody can count. Never fails."""

    def __init__(self, counter: TokenCounter | None) -> None:
        self._counter = counter
        self._known: OrderedDict[bytes, int] = OrderedDict()

    async def count(self, texts: Sequence[str]) -> list[int]:
        if self._counter is None:
            return [estimate_tokens(text) for text in texts]
        texts = [well_formed(text) for text in texts]
        keys = [_key(text) for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        counted = dict(zip(missing, await self._counter.count(list(missing.values())), strict=True)) if missing else {}
        counts = [self._known.get(key, counted.get(key)) for key in keys]
        for key, count in counted.items():
            if count is not None:
                self._known[key] = count
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return [estimate_tokens(text) if count is None else count for text, count in zip(texts, counts, strict=True)]


def check_tokenizer_file(path: Path) -> None:
    """Raises ValueError, saying what is wrong, for a file that is no tokenizer or where it cannot be used."""
    _load(path)


def _load(path: Path) -> Any:
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - needed only where a file is set
    except ImportError as error:
        raise ValueError("a tokenizer file needs the package tokenizers: pip install tokenizers") from error
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself
        raise ValueError(f"{path} is not a readable tokenizer.json: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
