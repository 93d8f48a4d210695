"""Which text in a run's context its user did not write, and which arguments of a call came from such text.

Passages, results of tools and earlier answers may hold orders of somebody else, and a model may obey them. Once such text is in the
context, each call that changes something waits for a person, whatever the policy of its tool says."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.orchestrator.guard.addresses import ADDRESS, addresses_in, carries_data

_SHORTEST_WORD = 4
"""Shorter words stand in any text: they say nothing about where an argument came from."""
_AROUND_WORDS = ".,;:!?()[]{}<>\"'`“”„«»…"


class Taint:
    """The words of a run's context, by who wrote them."""

    def __init__(self, own: Iterable[str], foreign: Iterable[str] = ()) -> None:
        """`own`: messages of the user. `foreign`: text that is in the context from the start."""
        own = list(own)
        self._own = set().union(*map(_words, own))
        self._foreign: set[str] = set()
        self._addresses = set().union(*map(addresses_in, own))
        self.is_present = False
        for text in foreign:
            self.add(text)

    def add(self, text: str) -> None:
        """Notes text that the user did not write."""
        self.is_present |= bool(text)
        self._foreign |= _words(text)
        self._addresses |= addresses_in(text)

    def arguments(self, arguments: Mapping[str, Any]) -> Sequence[str]:
        """Names of the arguments with a word that stands in foreign text and in none of the user's messages."""
        suspect = self._foreign - self._own
        return tuple(
            name for name, value in arguments.items() if any(_words(text) & suspect for text in _texts_in(value))
        )

    def may_carry_data(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a model has made up an address in the arguments, after text of others: it could carry data away. An address that
        stands in the context cannot, nor can the name of a host alone."""
        return self.is_present and any(
            text.strip() not in self._addresses and carries_data(text.strip(), is_strict=True)
            for value in arguments.values()
            for text in _texts_in(value)
            if ADDRESS.search(text)
        )


def _words(text: str) -> set[str]:
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return {word for each in words if len(word := each.strip(_AROUND_WORDS)) >= _SHORTEST_WORD}


def _texts_in(value: Any) -> Iterable[str]:
    """All strings and numbers of a JSON value."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield key
            yield from _texts_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts_in(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
