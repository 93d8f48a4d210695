"""What is known of an endpoint: its preset and context, from the settings or from the server, and how to count tokens for it."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx

from kit.llm.endpoint.discovery import ASK_AGAIN_S, RemoteCounter, discover
from kit.llm.endpoint.presets import GENERIC, Preset, TokenizerApi
from kit.llm.endpoint.tokens.counting import CountedTexts, FileCounter, TokenCounter
from kit.llm.endpoint.tokens.windows import window_of_model

REFRESH_S = 600.0
"""Another model may be served under the same name: it is asked again after so long, and when it takes less than it said."""
UNKNOWN_CONTEXT_TOKENS = 16_384
"""Context of a model that nobody says anything about. Most have more; one that has less says so at the first prompt that is too
long, and the prompt is made anew."""


class Knowledge:
    """Asks the server when it is first needed, and now and then; one that does not answer is asked again soon.

    The context is as configured, else as the server says, else as the model's name or the preset says, else UNKNOWN_CONTEXT_TOKENS;
    and no more than a refusal has said it is.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        base_url: str,
        model: str,
        preset: Preset,
        *,
        context_tokens: int = 0,
        tokenizer_file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._base_url = base_url
        self._model = model
        self._configured_tokens = context_tokens
        self._said_tokens = 0
        self._refused_tokens = 0
        self._refusal_counts_until = 0.0
        self._tokenizer_file = tokenizer_file
        self._clock = clock
        self._asking = asyncio.Lock()
        self._ask_at = float("inf") if self._knows_all(preset) else 0.0
        self.preset = preset
        self._texts = CountedTexts(self._counter())

    @property
    def context_tokens(self) -> int:
        tokens = self._configured_tokens or self._said_tokens or self._usual_tokens
        if self._refused_tokens and self._clock() < self._refusal_counts_until:
            return min(tokens, self._refused_tokens)
        return tokens

    @property
    def _usual_tokens(self) -> int:
        """What model and provider usually have. What Ollama takes is the server's to set, whatever the model can."""
        preset_tokens = self.preset.context_tokens
        if preset_tokens and self.preset.owner:
            return preset_tokens
        return window_of_model(self._model) or preset_tokens or UNKNOWN_CONTEXT_TOKENS

    async def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        """Tokens of each text; an estimate from above where nobody can count. Never fails."""
        await self._ask()
        return await self._texts.count(texts)

    def learn(self, refused_tokens: int) -> None:
        """The server has refused what should have fitted, and may have said how long its context is (0: it did not). It is asked
        again when it is next needed."""
        self._ask_at = min(self._ask_at, self._clock())
        if refused_tokens:
            self._refused_tokens = refused_tokens
            self._refusal_counts_until = self._clock() + REFRESH_S

    async def _ask(self) -> None:
        if not self._is_due():
            return
        async with self._asking:
            if not self._is_due():
                return  # somebody else has asked meanwhile
            facts = await discover(self._client, self._base_url, self._model)
            self._ask_at = self._clock() + (ASK_AGAIN_S if facts is None else REFRESH_S)
            if facts is None:
                return
            self._said_tokens = facts.context_tokens
            if self.preset is GENERIC and facts.preset is not None:
                self.preset = facts.preset
                self._texts = CountedTexts(self._counter())

    def _is_due(self) -> bool:
        return self._clock() >= self._ask_at

    def _knows_all(self, preset: Preset) -> bool:
        """Whether the server need not be asked. Ollama has a usual context, but it is the server's to set."""
        has_context = bool(self._configured_tokens or (preset.context_tokens and not preset.owner))
        return has_context and (preset is not GENERIC or self._tokenizer_file is not None)

    def _counter(self) -> TokenCounter | None:
        if self._tokenizer_file is not None:
            return FileCounter(self._tokenizer_file)
        if self.preset.tokenizer is not TokenizerApi.NONE:
            return RemoteCounter(self._client, self._base_url, self._model, self.preset.tokenizer)
        return None
