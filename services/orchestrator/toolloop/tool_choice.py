"""Which tools a model is shown where not all fit its context: those that the message calls for, then the most useful one, then the
others by their worth, by words that they share with the message, and by its meaning.

    the message calls for it    by name, or by a pattern of the tool's policy: always shown
    its worth                   as the tool's policy says
    shared words                BM25 over name, description and arguments
    meaning                     scores of the model server, where it answers

The last three are fused by their ranks.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from kit.language.terms import tokens
from kit.llm import LanguageModel, Operation, estimate_tokens, tools_text
from kit.ranking.fusion import RankedList, reciprocal_rank_fusion
from services.orchestrator.models import Tool
from services.orchestrator.toolloop.conversation import spec_of

_SHARE_OF_CONTEXT = 0.5
"""Of what the answer leaves of the model's context: the rest is for the thread, the question and what tools say."""
_MOST_OF_CONTEXT = 0.85
"""The same, for tools that the message calls for."""
_RANKS_K = 10
"""Constant of the fusion. Lists are short, and their first places say most."""
_READ_CHARS = 2000
"""What is read of a message's beginning, and of its end: between them stands what is to be worked on."""
_K1, _B = 1.2, 0.75
"""Constants of BM25."""


def tools_called_for(tools: Sequence[Tool], message: str) -> list[str]:
    """Names of the tools that the message calls for, those first that more of it calls for."""
    text = message if len(message) <= 2 * _READ_CHARS else f"{message[:_READ_CHARS]}\n{message[-_READ_CHARS:]}"
    found = {tool.name: _calls(tool, text) for tool in tools}
    return sorted((name for name, calls in found.items() if calls), key=lambda name: -found[name])


def describe(tool: Tool) -> str:
    """What a tool is, in a sentence whose meaning can be compared with a message's."""
    return f"{' '.join(_parts(tool.name))}: {tool.description}"


def rank_tools(
    tools: Sequence[Tool], message: str, needed: Sequence[str], meanings: Sequence[float] | None
) -> list[Tool]:
    """The tools, best first. `meanings` are similarities of the message to each tool's description."""
    names = [tool.name for tool in tools]
    worth = {tool.name: tool.worth for tool in tools}
    by_worth = sorted(names, key=lambda name: -worth[name])
    useful = [name for name in by_worth if worth[name] > 0]
    lists = [useful, _by_words(tools, message)]
    if meanings:
        similar, usual = dict(zip(names, meanings, strict=True)), sum(meanings) / len(meanings)
        lists.append(sorted((name for name in names if similar[name] > usual), key=lambda name: -similar[name]))
    fused = reciprocal_rank_fusion([RankedList(each, [0.0] * len(each)) for each in lists], k=_RANKS_K)
    places = {name: place for place, name in enumerate(dict.fromkeys([*needed, *useful[:1], *fused, *by_worth]))}
    return sorted(tools, key=lambda tool: places[tool.name])


async def tools_left_out(
    ranked: Sequence[Tool], needed: Collection[str], model: LanguageModel, answer_tokens: int, share: float = 1.0
) -> list[str]:
    """Names of the tools that do not fit the `share` of the model's context that is used; `needed` ones get more of it."""
    await model.count_tokens([""], Operation.ANSWER)  # the context of a server is known once it has been asked
    info = model.info(Operation.ANSWER)
    context = int(info.context_tokens * share)
    left = context - min(answer_tokens + info.reasoning_tokens, context // 2)
    texts = [tools_text([spec_of(tool)]) for tool in ranked]
    costs: Sequence[int] = [estimate_tokens(text) for text in texts]
    if sum(costs) > left * _SHARE_OF_CONTEXT:
        costs = await model.count_tokens(texts, Operation.ANSWER)
    left_out: list[str] = []
    used = 0
    for tool, cost in zip(ranked, costs, strict=True):
        if used + cost > left * (_MOST_OF_CONTEXT if tool.name in needed else _SHARE_OF_CONTEXT):
            left_out.append(tool.name)
        else:
            used += cost
    return left_out


def _calls(tool: Tool, text: str) -> int:
    """How many of the tool's patterns the message has; its name counts as one."""
    name = r"[\s_-]*".join(map(re.escape, _parts(tool.name)))
    patterns = (rf"(?<!\w){name}(?!\w)", *tool.called_for_by)
    return sum(found is not None and found.search(text) is not None for found in map(_compiled, patterns))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> "re.Pattern[str] | None":
    """None for what is no pattern: a tool's source may be another server."""
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error:
        return None


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"[\W_]+", name) if part]


def _by_words(tools: Sequence[Tool], message: str) -> list[str]:
    """Names of the tools that share words with the message, best first."""
    asked = set(_stems(message))
    documents = {tool.name: Counter(_stems(_words_of(tool))) for tool in tools}
    length = sum(each.total() for each in documents.values()) / max(len(documents), 1)
    frequency = Counter(stem for each in documents.values() for stem in each)
    scores = {
        name: sum(_weight(each, stem, frequency, length, len(tools)) for stem in asked)
        for name, each in documents.items()
    }
    return sorted((name for name, score in scores.items() if score > 0), key=lambda name: -scores[name])


def _weight(document: Counter[str], stem: str, frequency: Mapping[str, int], length: float, count: int) -> float:
    rarity = math.log(1 + (count - frequency[stem] + 0.5) / (frequency[stem] + 0.5)) if stem in frequency else 0.0
    times = document[stem]
    return rarity * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * document.total() / length)) if times else 0.0


def _words_of(tool: Tool) -> str:
    properties = tool.parameters.get("properties", {})
    described = (str(each.get("description", "")) for each in properties.values() if isinstance(each, Mapping))
    return " ".join([*_parts(tool.name), tool.description, *properties, *described])


def _stems(text: str) -> Iterable[str]:
    return (token.stem for token in tokens(text[: 2 * _READ_CHARS]) if not token.is_stopword)
