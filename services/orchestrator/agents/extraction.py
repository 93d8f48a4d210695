"""The agent that reads fields out of documents into a table."""

from services.orchestrator.agent import Agent
from services.orchestrator.extraction.working import extract

AGENT = Agent(
    "Extracts named fields, or those of a JSON Schema, from each document into a table with a row for each document.",
    called_for_by=(
        r"\b(extract|pull out|read out)\b.+\b(from|of|for|in) (all|each|every|these|my|our|the)\b",
        r"\b(extrahiere\w*|extrais|extrae|извлеки\w*|выпиши\w*|חלץ)\b.+\b(aus|de|из|מ\w+)\b",
    ),
    work=extract,
)
