"""`groundwork cluster` against an API server of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from cli.main import app
from tests.doubles.kubernetes import KubernetesDouble


@pytest.fixture
async def kubernetes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubernetesDouble]:
    """An empty cluster, to which KUBECONFIG leads."""
    double = KubernetesDouble()
    async with double.running():
        double.write_kubeconfig(tmp_path / "kubeconfig")
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield double


async def run(*arguments: str) -> Result:
    """`groundwork cluster …`, while the double answers."""
    return await asyncio.to_thread(CliRunner().invoke, app, ["cluster", *arguments])
