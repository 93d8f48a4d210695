"""The scripts behind `make lint` and `make gen`: where helm comes from, and that an example which is out of date is noticed."""

import platform
import shutil
from pathlib import Path

import pytest

from scripts import gen_chart, install_helm
from scripts import helm as helm_script
from scripts.helm import CHART, Helm, HelmError, find_helm


def test_other_machines_are_told_that_there_is_no_program_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert install_helm.main(tmp_path) == 0
    said = capsys.readouterr().out
    assert "Darwin on arm64" in said
    assert "`helm` from PATH" in said
    assert not list(tmp_path.iterdir())


def test_a_helm_on_path_is_used_where_none_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helm_script, "REPOSITORY", tmp_path)
    program = tmp_path / "helm"
    program.write_text("#!/bin/sh\necho v3.99.9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = find_helm()
    assert found is not None
    assert found.version() == "v3.99.9\n"
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_helm() is None


def test_without_helm_the_examples_are_left_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gen_chart, "find_helm", lambda: None)
    assert gen_chart.main(check=True) == 0
    assert "skipped" in capsys.readouterr().out


def test_the_users_cluster_makes_no_difference(helm: Helm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("not a kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("HELM_NAMESPACE", "mine")
    assert "namespace: mine" not in helm.template()


def test_what_helm_refuses_is_what_it_says(helm: Helm, tmp_path: Path) -> None:
    with pytest.raises(HelmError, match=r"Chart\.yaml"):
        helm.template(chart=tmp_path)


def test_every_values_file_has_an_example() -> None:
    names = {path.stem for path in gen_chart.EXAMPLES.glob("*.yaml")}
    assert names == set(gen_chart.values_files()) == {"external", "gpu", "small"}


def test_an_example_that_is_out_of_date_is_told_with_what_changed(
    helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = tmp_path / "examples"
    shutil.copytree(gen_chart.EXAMPLES, examples)
    monkeypatch.setattr(gen_chart, "EXAMPLES", examples)
    small = examples / "small.yaml"
    small.write_text(small.read_text().replace("replicas: 2", "replicas: 3", 1))
    (examples / "old.yaml").write_text("")
    assert gen_chart.main(check=True) == 1
    said = capsys.readouterr().err
    assert "-  replicas: 3" in said
    assert "+  replicas: 2" in said
    assert "small.yaml is out of date: run make gen" in said
    assert "old.yaml: there is no values file for it" in said

    assert gen_chart.main(check=False) == 0
    assert small.read_text() == gen_chart.render(helm, CHART / "values-small.yaml")
    assert not (examples / "old.yaml").exists()


def test_what_lint_finds_is_told_with_the_values_file(
    helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = tmp_path / "groundwork"
    shutil.copytree(CHART, chart)
    (chart / "values-small.yaml").write_text("gatway: {}\n")
    monkeypatch.setattr(gen_chart, "CHART", chart)
    monkeypatch.setattr(gen_chart, "render", lambda *_: "")
    monkeypatch.setattr(gen_chart, "EXAMPLES", tmp_path)
    assert gen_chart.main(check=True) == 1
    said = capsys.readouterr().err
    assert "--values values-small.yaml" in said
    assert "gatway" in said
