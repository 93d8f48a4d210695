"""Renders an example for each values file of the chart, values-NAME.yaml, into deploy/helm/examples/NAME.yaml, so that a change of
the chart shows what it changes in a cluster. With --check it writes nothing, and fails when what is committed differs or
`helm lint --strict` finds something."""

import difflib
import sys
from pathlib import Path

from scripts.helm import CHART, NO_HELM, Helm, HelmError, find_helm

EXAMPLES = CHART.parent / "examples"
KUBERNETES = "1.36"
_CHANGES_SHOWN_MAX = 60


def values_files() -> dict[str, Path]:
    """By the name of their example."""
    return {path.stem.removeprefix("values-"): path for path in sorted(CHART.glob("values-*.yaml"))}


def render(helm: Helm, values: Path) -> str:
    """The manifests, the same for the same chart: helm's version, the day and this machine make no difference."""
    command = f"helm template groundwork groundwork -f groundwork/{values.name} --kube-version {KUBERNETES}"
    return f"# Rendered by `make gen`: {command}\n" + helm.template(
        options=["--values", values, "--kube-version", KUBERNETES]
    )


def _lint(helm: Helm) -> list[str]:
    problems = []
    for values in (CHART / "values.yaml", *values_files().values()):
        try:
            helm.run("lint", CHART, "--strict", "--quiet", "--values", values, "--kube-version", KUBERNETES)
        except HelmError as error:
            problems.append(f"helm lint --strict --values {values.name}:\n{error}")
    return problems


def _drift(rendered: dict[Path, str]) -> list[str]:
    problems = [f"{path}: there is no values file for it" for path in EXAMPLES.glob("*.yaml") if path not in rendered]
    for path, text in rendered.items():
        committed = path.read_text() if path.exists() else ""
        if committed != text:
            changes = list(
                difflib.unified_diff(committed.splitlines(), text.splitlines(), str(path), "rendered", lineterm="", n=1)
            )
            problems.append(
                "\n".join([*changes[:_CHANGES_SHOWN_MAX], f"{path} is out of date: run make gen and commit it"])
            )
    return problems


def main(*, check: bool) -> int:
    helm = find_helm()
    if helm is None:
        print(f"the chart's examples are skipped: {NO_HELM}")
        return 0
    rendered = {EXAMPLES / f"{name}.yaml": render(helm, path) for name, path in values_files().items()}
    if check:
        problems = _lint(helm) + _drift(rendered)
        print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
        return 1 if problems else 0
    EXAMPLES.mkdir(exist_ok=True)
    for path in set(EXAMPLES.glob("*.yaml")) - set(rendered):
        path.unlink()
    for path, text in rendered.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
