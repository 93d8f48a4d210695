"""The tool loop over scripted models."""

from services.orchestrator.toolloop.loop import LoopEnd
from tests.unit.orchestrator.toolloop.scripting import Scene, ScriptedReplies, call, calls


async def test_calls_what_the_model_asks_for_and_answers_from_it() -> None:
    model = ScriptedReplies([calls(call("search", '{"query": "tower"}')), "It was built in 1889 [1]."])
    scene = Scene(model)

    result = await scene.run()

    assert scene.tools.made == [("search", {"query": "tower"})]
    assert result.end is LoopEnd.ANSWERED
    assert result.text == scene.shown == "It was built in 1889 [1]."
    assert [source.number for source in result.evidence] == [1, 2]
    observation = model.requests[1].messages[-1]
    assert observation.role == "tool"
    assert "[1] (tower.txt)\nThe tower was built in 1889" in observation.content
