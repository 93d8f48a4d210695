"""`groundwork cluster model`: another model for vLLM, while everything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.cluster.options import AsJson, Context, Namespace, ReleaseName, seconds
from cli.cluster.running import Target, run
from cli.display.output import Output
from cli.errors import in_words

if TYPE_CHECKING:
    from cli.cluster.connection.api import Api
    from cli.cluster.connection.release import Release


def model(
    name: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A name on the hub, or a folder of the models' volume, as `vllm.model` has it."
        ),
    ],
    timeout: Annotated[str, typer.Option(help="How long it may take to load, as 10m or 1h.")] = "1h",
    namespace: Namespace = "",
    release: ReleaseName = "",
    context: Context = "",
    as_json: AsJson = False,
) -> None:
    """Have vLLM serve another model: rolls its pods, waits until each completes something, and goes back if that fails.

    Holds until the next `helm upgrade`, which brings back what the values say. Exit code 1 if the former model is served again.
    """
    output = Output(as_json=as_json)

    async def command(api: Api, found: Release) -> int:
        from cli.cluster.model_swap import ModelSwap  # noqa: PLC0415 - needed here only, and clients should start fast

        def report(step: str) -> None:
            output.err.print(step, markup=False)

        swap = ModelSwap(api, found, report, timeout_s=seconds(timeout))
        serving = await swap.run(in_words(name, "model").strip())
        if as_json:
            output.json({"model": serving.model, "asked_as": serving.asked, "value": f"vllm.model={serving.model}"})
        else:
            output.out.print(
                f"vLLM serves {serving.model}, asked for as {serving.asked}. The next helm upgrade brings back what "
                "the values say: "
                f"set vllm.model={serving.model} there, and vllm.toolCallParser if it is of another family.",
                markup=False,
            )
        return 0

    stopped = "Stopped waiting; the roll-out goes on. The same command with the former model goes back."
    run(command, Target(context, namespace, release), interrupted=stopped)
