"""The peer's side of the bench of agents: LangGraph, run by its own interpreter. Reads a job from one file and writes the times to
another.

The agent is the one of its documentation: a graph of a model and its ToolNode. The model is a function that has its messages
ready, the tool returns at once, so what is left is the graph's own time.
"""

import json
import sqlite3
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool  # type: ignore[untyped-decorator]  # its stubs are in the environment of the peer
def look_up(word: str) -> str:
    """Looks a word up."""
    return f"{word} is known"


def graph(steps: int) -> Any:
    """Asks for the tool `steps` times, then answers."""

    def model(state: Any) -> dict[str, Any]:
        asked = sum(isinstance(message, AIMessage) for message in state["messages"])
        if asked % (steps + 1) == steps:
            return {"messages": [AIMessage("Everything is known.")]}
        call = {"name": "look_up", "args": {"word": f"word {asked}"}, "id": f"call-{asked}"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", ToolNode([look_up]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder


def run_times(builder: Any, saver: Any, job: dict[str, int], durability: str) -> list[float]:
    """Milliseconds of each run."""
    agent = builder.compile(checkpointer=saver)
    times = []
    for number in range(job["warm_up"] + job["runs"]):
        config = {"configurable": {"thread_id": f"{durability}-{number}"}}
        began = time.perf_counter()
        state = agent.invoke({"messages": [HumanMessage("Look words up.")]}, config, durability=durability)
        times.append(1000 * (time.perf_counter() - began))
        assert len(state["messages"]) == 2 + 2 * job["steps"], len(state["messages"])
    return times[job["warm_up"] :]


def main(asked: str, answered: str) -> None:
    job = json.loads(Path(asked).read_text("utf-8"))
    builder = graph(job["steps"])
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder, "checkpoints.db"), check_same_thread=False)
        times = {
            "in memory": run_times(builder, InMemorySaver(), job, "async"),
            "SQLite": run_times(builder, SqliteSaver(connection), job, "async"),
            "SQLite, each step before the next": run_times(builder, SqliteSaver(connection), job, "sync"),
        }
        connection.close()
    versions = {name: version(name) for name in ("langgraph", "langgraph-checkpoint-sqlite")}
    Path(answered).write_text(json.dumps({"versions": versions, "run_ms": times}), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
