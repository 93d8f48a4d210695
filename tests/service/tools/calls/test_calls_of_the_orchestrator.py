"""The orchestrator's adapter against the real tools service."""

from __future__ import annotations

import asyncio
import math
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from groundwork.tools.v1 import tools_pb2 as pb
from groundwork.tools.v1 import tools_pb2_grpc as rpc
from grpc import ChannelConnectivity

from kit.access.principal import Principal, use_principal
from kit.errors import InvalidArgument, Unavailable
from kit.rpc.channel import Channel
from kit.testing.harness import TEST_PRINCIPAL, free_port, open_test_channel
from services.orchestrator.adapters.services.tools import GrpcTools
from services.orchestrator.log.events import EffectClass
from services.orchestrator.models import Tool
from services.orchestrator.steps.effects import ToolOutcome
from services.tools.calling.folders import load
from services.tools.calling.progress import MESSAGES_MAX
from tests.service.tools.calls.conftest import CONTRACT, DROPPED, Serve, named


@pytest.fixture
def control(tools: GrpcTools) -> Any:
    """Of the tool `tells`."""
    module: Any = load(("groundwork_tool_tells", str(DROPPED / "tells.py")))
    module.control = module.Control()
    return module.control


@pytest.fixture
def once(tmp_path: Path) -> dict[str, Any]:
    """Arguments of a tool with an effect, whose process lives on: the file has its first line."""
    file = tmp_path / "made"
    file.write_text("made\n")
    return {"file": str(file)}


async def test_tools_are_offered_with_what_the_loop_needs_to_know(tools: GrpcTools) -> None:
    transfers = await named(tools, "transfers")
    assert (transfers.effect, transfers.timeout_s) == (EffectClass.ONCE, 5.0)
    assert transfers.parameters["required"] == ["file"]
    assert (await named(tools, "math_eval")).effect is EffectClass.NONE


async def test_outcome_comes_with_content_or_with_what_to_do(tools: GrpcTools) -> None:
    math_eval = await named(tools, "math_eval")
    good = await tools.call(math_eval, {"expression": "6 * 7"}, []).run("run1/a")
    assert (good.ok, good.content["result"], good.error_reason) == (True, "42", "")
    bad = await tools.call(math_eval, {"expression": "6 /"}, []).run("run1/b")
    assert (bad.ok, bad.error_reason) == (False, "MATH_ERROR")
    assert bad.content == {"error": "MATH_ERROR", "message": bad.summary}


@pytest.mark.parametrize(
    "arguments", [{"expression": math.nan}, {"expression": "\ud800"}, {"expression": b"1"}, {"expression": math.inf}]
)
async def test_arguments_that_are_no_json_are_refused_before_they_are_sent(
    tools: GrpcTools, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument, match="plain JSON"):
        await tools.call(await named(tools, "math_eval"), arguments, []).run("run1/a")


async def test_number_that_json_does_not_have_is_a_result(channel: Channel) -> None:
    """Of a caller that sends it all the same."""
    request = pb.CallToolRequest(name="math_eval")
    request.arguments.fields["expression"].number_value = math.inf
    stub: Any = rpc.ToolsServiceStub(channel)
    (event,) = [event async for event in stub.CallTool(request, timeout=30)]
    assert (event.result.ok, event.result.error_reason) == (False, "INVALID_ARGUMENTS")


async def test_progress_is_told_while_the_tool_works(tools: GrpcTools, control: Any) -> None:
    told: list[str] = []

    async def tell(message: str) -> None:
        told.append(message)
        if len(told) == 2:
            control.go_on.set()

    outcome = await tools.call(await named(tools, "tells"), {}, [], progress=tell).run("run1/a")
    assert (told, outcome.content) == (["Step 0.", "Step 1."], {"told": 2})


async def test_progress_is_bounded_and_may_be_left_unheard(tools: GrpcTools, control: Any) -> None:
    told: list[str] = []

    async def tell(message: str) -> None:
        told.append(message)

    control.go_on.set()
    tells = await named(tools, "tells")
    assert (await tools.call(tells, {"times": 1000}, [], progress=tell).run("run1/a")).ok
    assert len(told) == MESSAGES_MAX
    assert (await tools.call(tells, {"times": 1000}, []).run("run1/b")).ok


async def test_hanging_up_stops_a_tool_without_effect(tools: GrpcTools, control: Any) -> None:
    began = asyncio.Event()

    async def tell(message: str) -> None:
        began.set()

    calling = asyncio.create_task(tools.call(await named(tools, "tells"), {}, [], progress=tell).run("run1/a"))
    await began.wait()
    calling.cancel()
    await asyncio.wait([calling])
    async with asyncio.timeout(60):
        await control.stopped.wait()


@pytest.mark.parametrize("name", ["transfers", "keeps"])
async def test_asked_again_by_its_id_a_call_with_an_effect_answers_what_it_did(
    tools: GrpcTools, once: dict[str, Any], name: str
) -> None:
    call = tools.call(await named(tools, name), once, [])
    first = await call.run("run1/a")
    again = await call.find("run1/a")
    assert isinstance(again, ToolOutcome)
    assert (first.content, again.content) == ({"made": 2}, {"made": 2})
    assert (await call.run("run1/b")).content == {"made": 3}


async def test_calls_of_a_deleted_run_are_forgotten_for_its_tenant(
    tools: GrpcTools, channel: Channel, once: dict[str, Any]
) -> None:
    call = tools.call(await named(tools, "transfers"), once, [])
    with use_principal(Principal("umbrella", "eve")):
        await tools.forget_calls("run1")
    first = await call.run("run1/a")
    await tools.forget_calls("run1")
    assert first.ok
    assert (await call.run("run1/a")).error_reason == "CALL_FORGOTTEN"
    assert (await call.run("run1/b")).error_reason == "CALL_FORGOTTEN"
    assert (await call.run("run2/a")).ok
    for caller in ("", "run1/a", "r" * 201):
        with pytest.raises(InvalidArgument):
            await tools.forget_calls(caller)


async def test_tools_that_are_being_restarted_are_waited_for(serve: Serve) -> None:
    address = f"127.0.0.1:{free_port()}"
    async with open_test_channel(address, TEST_PRINCIPAL, CONTRACT, patience_s=60.0) as channel:
        tools = GrpcTools(channel, list_timeout_s=60.0)
        call = tools.call(Tool("math_eval", "", {}), {"expression": "6*7"}, [])
        waiting = [asyncio.ensure_future(each) for each in (tools.offered(), call.run("run1/a"), call.find("run1/b"))]
        while (state := channel.get_state()) is not ChannelConnectivity.TRANSIENT_FAILURE:
            await channel.wait_for_state_change(state)
        async with serve(address):
            offered, made, found = await asyncio.gather(*waiting)
    assert "math_eval" in {tool.name for tool in offered}
    assert (made.content["result"], found.content["result"]) == ("42", "42")


async def test_call_whose_connection_breaks_is_made_again(serve: Serve) -> None:
    broken = 0

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Cuts the connection before the first call comes through."""
        nonlocal broken
        with closing(writer):
            while data := await reader.read(65536):
                if not broken and b"math_eval" in data:
                    broken += 1
                    return
                writer.write(data)

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*address.rsplit(":", 1))
        await asyncio.gather(forward(reader, there_writer), forward(there_reader, writer))

    address = f"127.0.0.1:{free_port()}"
    async with serve(address), await asyncio.start_server(connect, "127.0.0.1", 0) as between:
        proxy = "{}:{}".format(*between.sockets[0].getsockname())
        async with open_test_channel(proxy, TEST_PRINCIPAL, CONTRACT, patience_s=60.0) as channel:
            tools = GrpcTools(channel, list_timeout_s=60.0)
            made = await tools.call(Tool("math_eval", "", {}), {"expression": "6*7"}, []).run("run1/a")
    assert (made.content["result"], broken) == ("42", 1)


async def test_tools_that_are_away_are_said_to_be_in_plain_words(serve: Serve) -> None:
    address = f"127.0.0.1:{free_port()}"
    async with open_test_channel(address, TEST_PRINCIPAL, CONTRACT, patience_s=0.1) as channel:
        tools = GrpcTools(channel, list_timeout_s=0.5)
        tool = Tool("math_eval", "", {})
        for asking in (
            tools.offered(),
            tools.call(tool, {}, []).run("run1/a"),
            tools.call(tool, {}, []).find("run1/a"),
            tools.forget_calls("run1"),
        ):
            with pytest.raises(Unavailable) as caught:
                await asking
            assert caught.value.message == "the tools do not answer now; try again in a minute"
