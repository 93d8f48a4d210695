"""The agent that summarises whole documents."""

from services.orchestrator.agent import Agent
from services.orchestrator.summaries.writing import summarise

AGENT = Agent(
    "Summarises whole documents, or all of a collection: overviews, key points, what a document is about.",
    called_for_by=(
        r"\b(summari[sz]\w*|summary|summaries|sum up|tl;?dr|overview|gist|recap|abstract of|synopsis|digest|in a nutshell)\b",
        r"\b(key (points?|takeaways?|findings)|main (points?|ideas?))\b",
        r"\bwhat('s| is| are) (this|these|the|it|they)\b.*\babout\b",
        r"\b(zusammenfass\w*|fass\w* .*zusammen|überblick|kernaussagen|worum geht)\b",
        r"\b(résum\w+|synthèse|aperçu|de quoi (parle|s'agit))",
        r"\b(кратк\w+ (изложи|содержани|перескаж)\w*|перескажи\w*|резюм\w+|тезис\w+|обзор\w*|о чём|о чем|суммируй\w*)\b",
        r"\b((סכם|סכמ[יו])|סיכום|תקציר|תמצת|תמצית|על מה)\b",
        r"\b(resum\w+|síntesis|de qué trata|puntos clave)\b",
    ),
    work=summarise,
)
