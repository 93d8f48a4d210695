"""Helm as the checks of the chart use it: the one of `.tools`, without a cluster and without what the user has set up for helm."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CHART = REPOSITORY / "deploy" / "helm" / "groundwork"
NO_HELM = "no helm: `make lint` installs it on Linux on x86-64; elsewhere put it on PATH"
_TIMEOUT_S = 60.0


class HelmError(Exception):
    """Helm refused. The message is what it wrote."""


class Helm:
    """One helm program, version 3 or 4."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def run(self, *arguments: str | Path) -> str:
        """What the command writes. Raises HelmError when it fails."""
        # An empty home: the user's cluster, plugins and repositories must make no difference.
        with tempfile.TemporaryDirectory() as home:
            environment = {"PATH": os.environ["PATH"], "HOME": home, "KUBECONFIG": os.devnull}
            command = [self._program, *arguments]
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, timeout=_TIMEOUT_S, check=False
            )
        if done.returncode:
            # `helm lint` writes what it finds as its output, and only a count as an error.
            raise HelmError(f"{done.stderr}{done.stdout}".strip())
        return done.stdout

    def version(self) -> str:
        return self.run("version", "--template", "{{.Version}}")

    def template(
        self,
        release: str = "groundwork",
        namespace: str = "groundwork",
        options: Iterable[str | Path] = (),
        chart: Path = CHART,
    ) -> str:
        """The manifests of a release, hooks and tests among them."""
        return self.run("template", release, chart, "--namespace", namespace, *options)


def find_helm() -> Helm | None:
    """The one that `make` installed, else the one on PATH."""
    installed = REPOSITORY / ".tools" / "bin" / "helm"
    if installed.exists():
        return Helm(installed)
    found = shutil.which("helm")
    return Helm(Path(found)) if found else None
