"""What is known of a person in short, without a model: the newest facts by kind, within a bound."""

from collections.abc import Sequence

from kit.llm import estimate_tokens
from services.memory.facts.models import Fact, FactKind

SUMMARY_TOKENS_MAX = 300
_HEADINGS = {
    FactKind.INSTRUCTION: "Wishes",
    FactKind.PROFILE: "About",
    FactKind.RELATION: "People",
    FactKind.PREFERENCE: "Likes and dislikes",
    FactKind.PLAN: "Plans",
}


def list_newest(facts: Sequence[Fact]) -> str:
    """A line a kind, with its newest facts. The kinds take turns, so that many facts of one leave room for the others."""
    newest = sorted(facts, key=lambda fact: fact.learnt_at, reverse=True)
    waiting = {kind: [fact for fact in newest if fact.kind is kind] for kind in _HEADINGS}
    kept: dict[FactKind, list[Fact]] = {kind: [] for kind in _HEADINGS}
    while any(waiting.values()):
        for kind, facts_of_kind in waiting.items():
            if not facts_of_kind:
                continue
            kept[kind].append(facts_of_kind.pop(0))
            if estimate_tokens(_text(kept)) > SUMMARY_TOKENS_MAX:
                kept[kind].pop()
                facts_of_kind.clear()
    return _text(kept)


def within_bound(text: str) -> str:
    """What a model has written, cut at a sentence where it is too long."""
    words = " ".join(text.split())
    while words and estimate_tokens(words) > SUMMARY_TOKENS_MAX:
        head, dot, _ = words.rstrip(".").rpartition(". ")
        words = head + "." if dot else words[: len(words) * 3 // 4]
    return words


def _text(kept: dict[FactKind, list[Fact]]) -> str:
    lines = (f"{_HEADINGS[kind]}: {'; '.join(fact.text for fact in facts)}." for kind, facts in kept.items() if facts)
    return "\n".join(lines)
