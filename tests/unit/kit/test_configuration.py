"""What a wrong setting says, and how the process ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic import Field, SecretStr

from kit.errors import FailedPrecondition
from kit.process.configuration import EX_CONFIG, read_settings
from kit.process.service import Service, run_process
from kit.process.settings import ServiceSettings
from services.orchestrator.settings import OrchestratorSettings


class ExampleSettings(ServiceSettings):
    """Some kinds of settings."""

    share: float = Field(default=0.5, ge=0, le=1)
    switch: bool = False
    api_key: SecretStr | None = Field(default=None, max_length=3)
    keys: dict[str, SecretStr] = Field(default_factory=dict)


async def never_run(settings: ExampleSettings) -> None:
    raise AssertionError(settings)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("LOG_LEVEL", "chatty", "LOG_LEVEL=chatty is not valid: it must be one of DEBUG, INFO, WARNING, ERROR"),
        ("OPS_PORT", "70000", "OPS_PORT=70000 is not valid: it must be at most 65535"),
        ("OPS_PORT", "high", "OPS_PORT=high is not valid: it must be a whole number"),
        ("SHARE", "-1", "SHARE=-1 is not valid: it must be at least 0"),
        ("SHARE", "", "SHARE='' is not valid: it must be a number"),
        ("SWITCH", "may\nbe", r"SWITCH='may\nbe' is not valid: it must be true or false"),
        (
            "AUTH_PUBLIC_KEYS_FILE",
            "keys.json",
            "AUTH_PUBLIC_KEYS_FILE=keys.json is not valid: the key itself is set as well; set one of the two",
        ),
        ("API_KEY", "hush", "API_KEY is not valid: it must have at most 3 characters"),
        ("KEYS", '{"a": hush}', "KEYS is not valid: it must be JSON"),
    ],
)
def test_a_wrong_setting_is_one_line_and_exit_code_78(
    name: str, value: str, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(f"GROUNDWORK_{name}", value)
    with pytest.raises(SystemExit) as ended:
        run_process(never_run, ExampleSettings)
    assert ended.value.code == EX_CONFIG
    assert capsys.readouterr().err == f"GROUNDWORK_{line}\n"


def test_each_wrong_setting_has_its_line_and_a_missing_one_shows_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GROUNDWORK_AUTH_PUBLIC_KEYS")
    monkeypatch.setenv("GROUNDWORK_API_KEY", "key")
    monkeypatch.setenv("GROUNDWORK_SHARE", "2")
    with pytest.raises(SystemExit):
        read_settings(ExampleSettings)
    assert capsys.readouterr().err.splitlines() == [
        "GROUNDWORK_AUTH_PUBLIC_KEYS_FILE is not set, and there is no default",
        "GROUNDWORK_SHARE=2 is not valid: it must be at most 1",
    ]


def test_who_signs_must_have_a_key_and_who_only_answers_need_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GROUNDWORK_AUTH_SIGNING_KEY")
    assert read_settings(ExampleSettings).signing_key() is None
    with pytest.raises(SystemExit):
        read_settings(OrchestratorSettings)
    assert "GROUNDWORK_AUTH_SIGNING_KEY_FILE" in capsys.readouterr().err


def test_a_key_that_cannot_be_used_ends_the_process_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GROUNDWORK_AUTH_PUBLIC_KEYS")
    monkeypatch.setenv("GROUNDWORK_AUTH_PUBLIC_KEYS_FILE", str(tmp_path / "missing.json"))

    async def start(settings: ExampleSettings) -> None:
        Service("test", settings)

    with pytest.raises(SystemExit) as ended:
        run_process(start, ExampleSettings)
    assert ended.value.code == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"BAD_KEYS: GROUNDWORK_AUTH_PUBLIC_KEYS_FILE={tmp_path}/missing.json holds no usable key")


@pytest.mark.parametrize(
    "value", ["notaurl", "ftp://host/v1", "http://", "http://host:port/v1", "http://[::1/v1", "http://a b/v1"]
)
def test_the_language_models_address_must_be_a_web_address(
    value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUNDWORK_LLM_BASE_URL", value)
    with pytest.raises(SystemExit):
        read_settings(OrchestratorSettings)
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("GROUNDWORK_LLM_BASE_URL=")
    assert "/v1" in line


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("", None),
        ("  ", None),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("https://host", "https://host"),
    ],
)
def test_an_empty_address_of_the_language_model_counts_as_not_set(
    value: str, read: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWORK_LLM_BASE_URL", value)
    assert read_settings(OrchestratorSettings).llm_base_url == read


async def fail_in_a_group(settings: ExampleSettings) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_fail())
        group.create_task(asyncio.sleep(settings.share))


async def _fail() -> None:
    raise FailedPrecondition("the server is too old; run version 9 or later", reason="SERVER_TOO_OLD")


def test_an_error_of_ours_that_ends_a_process_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_process(fail_in_a_group, ExampleSettings)
    assert ended.value.code == 1
    assert capsys.readouterr().err == "SERVER_TOO_OLD: the server is too old; run version 9 or later\n"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("GROUNDWORK_LLM_PRESET", "openia", "there is no preset 'openia'; take one of openai, anthropic"),
        ("GROUNDWORK_LLM_TOKENIZER_FILE", "/nowhere/tokenizer.json", "is not a readable tokenizer.json"),
        ("GROUNDWORK_LLM_CONTEXT_TOKENS", "-1", "it must be at least 0"),
    ],
)
def test_what_is_said_of_the_language_model_must_make_sense(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        read_settings(OrchestratorSettings)
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{name}=")
    assert said in line
