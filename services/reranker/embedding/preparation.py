"""From request texts to token ids: the checks, and tokenizing off the event loop."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial

from services.reranker.embedding.pooling import Reduction, content_vectors, query_vectors, text_vectors
from services.reranker.errors import TextCountOutOfRange, TextEmpty
from services.reranker.models import ContentVectors, QueryVectors, TextKind, TextVectors, TokenIds
from services.reranker.ports import PairTokenizer, Tokenizer

MAX_TEXTS = 1024
"""Texts of one request, as the contract says."""

_SLICE_TEXTS = 64
_SHORT_CHARACTERS = 200
"""Up to this many are tokenized on the event loop: a question takes 0.05 to 0.3 ms, no more than waking a thread for it."""
_MAX_CHARACTERS_PER_TOKEN = 64
"""A text is cut to this many characters per token of the window before it is tokenized: a megabyte of text must not cost
more than the window it is cut to. English takes about 5 characters per token."""


class Preparation:
    """Checks texts and tokenizes them on a small executor, in slices, so that a short request passes between two slices of
    a long one, or does not go there at all. `prompts` are what the model was trained to find in front of a text."""

    def __init__(self, tokenizer: Tokenizer, executor: Executor, prompts: Mapping[TextKind, str] | None = None) -> None:
        self._tokenizer = tokenizer
        self._executor = executor
        self._prompts = prompts or {}
        self._prompt_tokens = {kind: self._count(prompt) - self._count("") for kind, prompt in self._prompts.items()}
        self._max_characters = tokenizer.window_tokens * _MAX_CHARACTERS_PER_TOKEN

    @property
    def window_tokens(self) -> int:
        """Tokens the model sees of a passage, special tokens included; the prompt takes its own from the window."""
        return self._tokenizer.window_tokens - self._prompt_tokens.get(TextKind.PASSAGE, 0)

    async def token_ids(self, texts: Sequence[str], kind: TextKind) -> list[TokenIds]:
        """Token ids per text, cut to the window."""
        prompt = self._prompts.get(kind, "")
        prompted = [prompt + text for text in texts] if prompt else texts
        return await _in_slices(self._tokenizer.tokenize, prompted, self._max_characters, self._executor)

    @property
    def text_vectors(self) -> Reduction[TextVectors]:
        """What late interaction needs of a passage."""
        return partial(text_vectors, prompt_tokens=self._prompt_tokens.get(TextKind.PASSAGE, 0))

    @property
    def query_vectors(self) -> Reduction[QueryVectors]:
        """What it needs of a query."""
        prompt_tokens = self._prompt_tokens.get(TextKind.QUERY, 0)
        return partial(query_vectors, rarities=self._tokenizer.rarities, prompt_tokens=prompt_tokens)

    @property
    def content_vectors(self) -> Reduction[ContentVectors]:
        """What the judge of claims needs of a text that was read as a query: E5 compares texts of one kind so."""
        return partial(content_vectors, prompt_tokens=self._prompt_tokens.get(TextKind.QUERY, 0))

    def _count(self, text: str) -> int:
        return len(self._tokenizer.tokenize([text])[0])


class PairPreparation:
    """The same for a cross-encoder's pairs."""

    def __init__(self, tokenizer: PairTokenizer, executor: Executor) -> None:
        self._tokenizer = tokenizer
        self._executor = executor
        self._max_characters = tokenizer.window_tokens * _MAX_CHARACTERS_PER_TOKEN

    async def token_ids(self, query_text: str, passages: Sequence[str]) -> list[TokenIds]:
        """Token ids of the query with each passage, cut to the window."""
        tokenize = partial(self._tokenizer.tokenize_pairs, query_text[: self._max_characters])
        return await _in_slices(tokenize, passages, self._max_characters, self._executor)


async def _in_slices(
    tokenize: Callable[[Sequence[str]], list[TokenIds]], texts: Sequence[str], max_characters: int, executor: Executor
) -> list[TokenIds]:
    if sum(map(len, texts)) <= _SHORT_CHARACTERS:
        return tokenize(texts)
    loop = asyncio.get_running_loop()
    ids: list[TokenIds] = []
    for start in range(0, len(texts), _SLICE_TEXTS):
        part = [text[:max_characters] for text in texts[start : start + _SLICE_TEXTS]]
        ids += await loop.run_in_executor(executor, tokenize, part)
    return ids


def check_texts(texts: Sequence[str], name: str) -> None:
    """Raises TextCountOutOfRange or TextEmpty. `name` is the request's field."""
    if not 1 <= len(texts) <= MAX_TEXTS:
        raise TextCountOutOfRange(
            f"{name} holds {len(texts)} texts; send 1 to {MAX_TEXTS} and split larger jobs into several requests",
            field=name,
        )
    for index, text in enumerate(texts):
        if not text.strip():
            raise TextEmpty(
                f"{name}[{index}] is empty or blank; leave texts without words out", field=f"{name}[{index}]"
            )
