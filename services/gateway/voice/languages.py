"""The language in which an answer is said: that of the question."""

import asyncio

from kit.language.detection import FastTextLanguages
from kit.language.question_language import QuestionLanguages, language_of

_ENGLISH = "en"


class SpokenLanguages:
    """Tells languages apart. The detector is loaded with the first question."""

    def __init__(self) -> None:
        self._languages = QuestionLanguages(FastTextLanguages())

    async def of(self, question: str) -> str:
        """The question's language; English where nothing can be said."""
        return await asyncio.to_thread(language_of, question, self._languages) or _ENGLISH
