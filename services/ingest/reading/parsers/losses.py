"""What of a file is not in its text, in the words of its report."""


def left_out(count: int, what: str) -> list[str]:
    """`1 picture was left out`, `3 pictures were left out`; no words for none. `what` is in the singular."""
    if not count:
        return []
    return [f"1 {what} was left out" if count == 1 else f"{count} {what}s were left out"]
