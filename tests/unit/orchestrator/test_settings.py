"""The settings of language models, as an operator writes them."""

import json
from pathlib import Path

import pytest

from kit.llm import Finish, FinishReason, Operation, TokenUsage
from kit.llm.providers import Choice
from kit.process.configuration import read_settings
from services.orchestrator.settings import OrchestratorSettings

PROVIDERS = json.dumps({"gpu": {"preset": "vllm", "api_key": "sk-secret", "models": {"qwen": {}}}})


def settings(monkeypatch: pytest.MonkeyPatch, **variables: str) -> OrchestratorSettings:
    for name, value in variables.items():
        monkeypatch.setenv(f"GROUNDWORK_{name.upper()}", value)
    return read_settings(OrchestratorSettings)


def test_without_any_setting_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings(monkeypatch, llm_providers=" ").model_catalog() is None


def test_the_three_simple_settings_are_one_provider_for_all_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings(
        monkeypatch,
        llm_base_url="http://127.0.0.1:8000/v1",
        llm_model="qwen",
        llm_api_key="k",
        llm_prompt_usd_per_million_tokens="2",
    ).model_catalog()
    assert found is not None
    assert set(found.chains.values()) == {(Choice("default", "qwen"),)}
    spent = Finish(FinishReason.STOP, TokenUsage(500_000, 1), "default", "qwen")
    assert found.prices().cost_usd(spent) == pytest.approx(1.0)
    assert found.providers["default"].offers("another")


def test_providers_come_from_a_value_or_a_file_and_stand_beside_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "providers.json").write_text(PROVIDERS)
    found = settings(
        monkeypatch,
        llm_base_url="http://127.0.0.1:8000/v1",
        llm_model="small",
        llm_providers_file=str(tmp_path / "providers.json"),
        llm_operations='{"plan": "default/small"}',
    ).model_catalog()
    assert found is not None
    assert found.chains[Operation.PLAN] == (Choice("default", "small"),)
    assert found.chains[Operation.ANSWER] == (Choice("gpu", "qwen"), Choice("default", "small"))


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"llm_providers": "{"}, "GROUNDWORK_LLM_PROVIDERS is not valid: the providers are not JSON"),
        ({"llm_providers": '{"a": {}}'}, "GROUNDWORK_LLM_PROVIDERS is not valid: provider 'a': it needs a preset"),
        (
            {"llm_providers_file": "/nowhere"},
            "LLM_PROVIDERS_FILE=/nowhere is not valid: it cannot be read (No such file",
        ),
        ({"llm_providers": PROVIDERS, "llm_providers_file": "f"}, "the providers themselves are set as well"),
        ({"llm_providers": PROVIDERS, "llm_operations": '{"plan": "gpu/x"}'}, "gpu has no model 'x'; it has qwen"),
        ({"llm_operations": '{"plan": "gpu/x"}'}, "there is no provider; set GROUNDWORK_LLM_PROVIDERS"),
        (
            {"llm_providers": PROVIDERS.replace("gpu", "default"), "llm_base_url": "http://h/v1"},
            "provider 'default' is the one of GROUNDWORK_LLM_BASE_URL",
        ),
        ({"egress_allowed_networks": "10.0.0.1/8"}, "EGRESS_ALLOWED_NETWORKS=10.0.0.1/8 is not valid: 10.0.0.1/8 has"),
        ({"approval_expiry_s": "604800"}, "APPROVAL_EXPIRY_S=604800 is not valid: it must be at most 518400"),
        ({"model_credentials_life_s": "4000"}, "MODEL_CREDENTIALS_LIFE_S=4000 is not valid: it must be at most 3600"),
    ],
)
def test_a_wrong_setting_is_one_line_without_a_key(
    variables: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        settings(monkeypatch, **variables)
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert "sk-secret" not in said


def test_a_question_to_a_person_stands_for_no_longer_than_half_the_life_of_its_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert settings(monkeypatch).approval_life_s == 86_400.0
    assert settings(monkeypatch, run_retention_days="1").approval_life_s == 43_200.0
