"""A model's whole answer as one text, for callers that cannot use it before it is complete."""

from contextlib import aclosing

from kit.llm.messages import LanguageModel, Request, Restart, Retraction, TextDelta


async def complete_text(model: LanguageModel, request: Request, *, max_characters: int | None = None) -> str:
    """The text that a model writes, without what it took back. It is stopped once the text is longer than `max_characters`.

    Raises ModelUnavailable or ModelRejected.
    """
    text = ""
    async with aclosing(model.complete(request)) as deltas:
        async for delta in deltas:
            match delta:
                case TextDelta(piece):
                    text += piece
                case Retraction() | Restart():
                    text = ""
                case _:
                    pass
            if max_characters is not None and len(text) > max_characters:
                break
    return text
