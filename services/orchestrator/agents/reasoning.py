"""The agent for questions that need analysis, and the default."""

from services.orchestrator.agent import Agent

AGENT = Agent("Answers questions about documents: facts, comparisons, and what follows from several passages.")
