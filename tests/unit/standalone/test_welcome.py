"""The last words of the start."""

from pathlib import Path

from services.standalone.console import welcome


def shown(*, with_keys: bool = False, own_documents: tuple[str, ...] = ()) -> str:
    return welcome(
        url="http://127.0.0.1:8081",
        seconds=2.0,
        program="groundwork",
        environment="GROUNDWORK_PORT=8081 ",
        logs=Path("data/logs"),
        with_keys=with_keys,
        own_documents=own_documents,
    )


def test_commands_come_in_the_order_of_a_first_minute() -> None:
    text = shown(own_documents=("README.md", "docs/"))
    commands = [
        "demo",
        "ingest README.md docs/",
        "ask 'How do I change the port?'",
        "curl -s http://127.0.0.1:8081/v1/qa",
    ]
    places = [text.index(each) for each in commands]
    assert places == sorted(places)
    assert "GROUNDWORK_PORT=8081 groundwork demo" in text


def test_curl_asks_what_the_command_line_asks_and_needs_no_samples() -> None:
    for own_documents, question in ((("README.md", "docs/"), "How do I change the port?"), ((), "YOUR QUESTION")):
        text = shown(own_documents=own_documents)
        assert f"groundwork ask '{question}'" in text
        assert text.count(f"""-d '{{"question": "{question}"}}'""") == 1


def test_where_there_are_no_documents_of_ours_none_are_named() -> None:
    text = shown()
    assert "README" not in text
    assert "ingest FILES AND FOLDERS" in text


def test_with_keys_the_key_comes_first() -> None:
    text = shown(with_keys=True)
    assert text.index("export GROUNDWORK_API_KEY") < text.index("groundwork demo")
    assert "Bearer $GROUNDWORK_API_KEY" in text


def test_what_answers_is_named_where_it_is_known() -> None:
    told = welcome(url="", seconds=1, program="groundwork", environment="", logs=Path("logs"), model="gpu/qwen")
    assert "Language model: gpu/qwen" in told
    assert "Language model" not in shown()


def test_ctrl_c_is_said_where_there_is_a_terminal() -> None:
    for has_terminal in (True, False):
        told = welcome(
            url="", seconds=1, program="groundwork", environment="", logs=Path("logs"), has_terminal=has_terminal
        )
        assert ("Ctrl-C" in told) is has_terminal
