"""Cases that need a running system: questions and searches over the files of a case, requests of unusual clients, and what reaches
the language model. The model is scripted: what is looked at is its prompt, and what becomes of its answer."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from cli.client.gateway import Gateway, Json
from cli.errors import CliError
from evals.errors import EvaluationError
from evals.retrieval.indexing import index
from evals.system import RunningSystem, running_system
from kit.testing.openai import Reply, ScriptedModel, scripted_model

_COMMAND_TIMEOUT_S = 300.0
_PATIENT = {
    "GROUNDWORK_RETRIEVER_EMBED_TIMEOUT_S": "10",
    "GROUNDWORK_RETRIEVER_ENGINE_TIMEOUT_S": "20",
    "GROUNDWORK_RETRIEVER_RERANK_TIMEOUT_S": "10",
    "GROUNDWORK_RUN_SCORE_TIMEOUT_S": "10",
    "GROUNDWORK_RUN_SEARCH_TIMEOUT_S": "60",
}
"""The cases say what is answered, not how fast: on a busy machine words alone would decide."""
_TANK, _METRIC = "What is the fuel tank capacity of the Petrel?", "What is metric_110 of site Tarsk4?"


@dataclass(frozen=True)
class Question:
    """A question over the files of a case, answered without a model, and what its answer holds."""

    case: str
    text: str
    expected: str
    is_search: bool = False
    """Whether it is only searched for, and the first passage holds what is expected."""


QUESTIONS = (
    Question("cpp-csharp-c", "Which team uses C#?", "desktop"),
    Question("cpp-csharp-c", "Who writes in C?", "firmware"),
    Question("ids-without-separators", "ppr9087", "brake pad", is_search=True),
    Question("ids-without-separators", "3520301597", "oil filter", is_search=True),
    Question("ids-without-separators", "9783161484100", "operator handbook", is_search=True),
    Question("ids-without-separators", "+49305550199", "porter", is_search=True),
    Question("ids-without-separators", "What changed in 3.0.0?", "Windows 7"),
    Question("ids-without-separators", "max retry count", "7"),
    Question("ids-without-separators", "10.20.30.41", "db-prod-03"),
    Question("thai-questions", "กุญแจคลังสินค้าอยู่ที่ไหน", "ห้องยาม"),
    Question("thai-questions", "ตรวจสอบอัคคีภัยวันไหน", "วันพุธ"),
    Question("thai-questions", "ลาพักร้อนได้กี่วัน", "สิบวัน"),
    Question("section-heading-not-in-prompt", _TANK, "900"),
    Question("split-row-without-name", _METRIC, "site: Tarsk4", is_search=True),
    Question("log-lines", "How long did job 7450 take?", "took="),
    Question("log-lines", "E-4321", "code=E-4321", is_search=True),
    Question("label-value-tables", "Where did the accident happen?", "Loading dock 4"),
    Question("label-value-tables", "What is the case number?", "AZ-2207/19"),
    Question("xlsx-one-row-blocks-lost", "Who is the site manager?", "Ines Varg"),
    Question("markdown-br-front-matter-numbers", "What is step 2?", "Wait"),
    Question("pdf-check-boxes", "Was shore power requested?", "yes"),
    Question("mail", "When is the crane inspection?", "18 June"),
    Question("mail", "Which berth was booked?", "C-14"),
    Question("encodings-central-europe-turkish", "Gdzie stoi żółta łódź?", "nabrzeż"),
)
FOLDERS = frozenset(each.case for each in QUESTIONS) | {"answer-in-other-language"}
_MARKS = ("[1]", "【1†source】", "[1-1]", "[^1]", "(1)")
_SHIP = "answer-in-other-language"
_FLEET, _WIDE = "section-heading-not-in-prompt", "split-row-without-name"
_THREADS = "stopped-turn-vanishes"


def run_questions(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each case with its failures, over a system that is started: first without a model, then with a scripted one."""
    refused: list[Question] = []
    with tempfile.TemporaryDirectory(prefix="groundwork-cases-", ignore_cleanup_errors=True) as data:
        with running_system(Path(data), _PATIENT) as system:
            yield from asyncio.run(_collected(_without_model(system, folder, refused)))
        yield from asyncio.run(_with_model(Path(data), refused))


async def _collected(found: AsyncIterator[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    return [each async for each in found]


async def _without_model(
    system: RunningSystem, folder: Path, refused: list[Question]
) -> AsyncIterator[tuple[str, list[str]]]:
    """Each case with its failures; questions that get no answer join `refused`, for a model may yet answer them."""
    async with Gateway.open(system.url) as gateway:
        for case in sorted(each for each in FOLDERS if (folder / each).is_dir()):
            files = {path.name: path for path in (folder / case).iterdir() if path.name != "expected.txt"}
            try:
                await index(gateway, case, files)
            except (EvaluationError, CliError) as error:
                yield case, [f"{case} is not indexed: {error}"]
        for question in QUESTIONS:
            failures = await _failures(gateway, question, refused)
            if question not in refused:
                yield f"{question.case}: {question.text}", failures
        yield "api-small: a table of tabs called .xls", await _table_called_xls(gateway)
    yield "api-small", await _unusual_requests(system.url)
    yield "upload-filename-star", await _upload_with_star(system.url)
    yield "cli-file-name-not-utf8", await asyncio.to_thread(_ingest_odd_names, system.url)


async def _failures(gateway: Gateway, question: Question, refused: list[Question]) -> list[str]:
    if question.is_search:
        body: Json = {"query": question.text, "collection_ids": [question.case]}
        hits = (await gateway.request("POST", "/v1/search", json=body))["hits"]
        found = hits[0]["text"] if hits else ""
    else:
        body = {"question": question.text, "collection_ids": [question.case]}
        answer = await gateway.request("POST", "/v1/qa", json=body)
        found = answer["answer"]
        if answer["status"] == "refused":
            refused.append(question)
    is_right = question.expected in found
    return [] if is_right else [f"{question.case}: {question.text!r} gives {found[:200]!r}, not {question.expected!r}"]


async def _table_called_xls(gateway: Gateway) -> list[str]:
    """A file as programs export it that call tab-separated text a sheet of Excel."""
    with tempfile.TemporaryDirectory(prefix="groundwork-cases-") as folder:
        path = Path(folder, "export.xls")
        await asyncio.to_thread(path.write_text, "Meter\tReading\nM-2\t456\n", "utf-8")
        try:
            await index(gateway, "api-small", {path.name: path})
        except (EvaluationError, CliError) as error:
            return [f"export.xls with tabs is not read: {error}"]
    return await _failures(
        gateway, Question("api-small", "reading of M-2", "Meter: M-2; Reading: 456", is_search=True), []
    )


async def _unusual_requests(url: str) -> list[str]:
    """A HEAD of the health, HTTP/1.0 without Host, a collection whose name is in another script."""
    failures = []
    async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
        if (head := await http.head("/livez")).status_code != httpx.codes.OK:
            failures.append(f"HEAD /livez gives {head.status_code}")
        made = await http.post("/v1/collections", json={"name": "合同"})
        if made.status_code != httpx.codes.CREATED or not made.json().get("id"):
            failures.append(f"a collection called 合同 gives {made.status_code}: {made.text[:200]}")
    first = await asyncio.to_thread(_status_of_http_1_0, url)
    return failures if " 200" in first else [*failures, f"HTTP/1.0 without Host gives {first!r}"]


def _status_of_http_1_0(url: str) -> str:
    address = urllib.parse.urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=_COMMAND_TIMEOUT_S) as connection:
        connection.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
        return connection.recv(4096).split(b"\r\n")[0].decode("latin-1")


async def _upload_with_star(url: str) -> list[str]:
    """File names as clients write them that follow RFC 8187, beside an encoded word or alone."""
    failures = []
    encoded = "filename*=UTF-8''%E6%8A%A5%E5%91%8A.txt"
    async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
        for names in (f'filename="=?utf-8?B?5oql5ZGKLnR4dA==?="; {encoded}', encoded):
            part = f'--b\r\nContent-Disposition: form-data; name="file"; {names}\r\n\r\nHigh water.\r\n--b--\r\n'
            headers = {"Content-Type": "multipart/form-data; boundary=b"}
            path = "/v1/collections/default/documents"
            answer = await http.post(path, content=part.encode(), headers=headers)
            name = answer.json().get("document", {}).get("name", answer.text)
            failures += [] if name == "报告.txt" else [f"an upload with {names} is called {name}"]
    return failures


def _ingest_odd_names(url: str) -> list[str]:
    """A folder with a name that is not UTF-8 beside one that is."""
    with tempfile.TemporaryDirectory(prefix="groundwork-cases-") as folder:
        Path(folder, "b.md").write_text("High water is at four.", "utf-8")
        try:
            Path(folder, os.fsdecode(b"caf\xe9.txt")).write_text("x", "utf-8")
        except OSError:
            return []  # a file system that has no such names
        command = [str(Path(sys.executable).with_name("groundwork")), "ingest", folder]
        environment = {**os.environ, "GROUNDWORK_URL": url}
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, timeout=_COMMAND_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return [f"ingest did not end within {_COMMAND_TIMEOUT_S:.0f} s"]
        said = (done.stdout + done.stderr).decode("utf-8", "replace")
    return [] if "1 ready, 1 failed" in said and "not UTF-8" in said else [f"ingest says {said[-300:]!r}"]


async def _with_model(data: Path, refused: Sequence[Question]) -> list[tuple[str, list[str]]]:
    """What the prompts hold, those of questions that are refused without a model among them, marks of any form, and a turn that
    is stopped."""
    async with scripted_model(Reply(["Nothing."])) as model:
        settings = {**_PATIENT, "GROUNDWORK_LLM_BASE_URL": model.base_url, "GROUNDWORK_LLM_MODEL": "scripted"}
        started = running_system(data, settings)
        system = await asyncio.to_thread(started.__enter__)
        try:
            async with Gateway.open(system.url) as gateway:
                asked = [
                    (
                        f"{each.case}: {each.text} (refused without a model, which is shown {each.expected!r})",
                        await _prompt(gateway, model, each.case, each.text, (each.expected,)),
                    )
                    for each in refused
                ]
                return [
                    *asked,
                    (_SHIP, await _marks(gateway, model)),
                    (_FLEET, await _prompt(gateway, model, _FLEET, _TANK, ("Fleet handbook > Petrel",))),
                    (_WIDE, await _prompt(gateway, model, _WIDE, _METRIC, ("site: Tarsk4", "metric_110"))),
                    (_THREADS, await _stopped(gateway, model)),
                ]
        finally:
            await asyncio.to_thread(started.__exit__, None, None, None)


async def _marks(gateway: Gateway, model: ScriptedModel) -> list[str]:
    failures = []
    for mark in _MARKS:
        model.replies = [Reply([f"Die Halcyon wurde 1962 gebaut {mark}."])]
        body = {"question": "Wann wurde die Halcyon gebaut?", "collection_ids": [_SHIP]}
        answer = await gateway.request("POST", "/v1/qa", json=body)
        if answer["answer"] != "Die Halcyon wurde 1962 gebaut [1].":
            failures.append(f"{_SHIP}: the mark {mark} gives {answer['answer']!r}")
    return failures


async def _prompt(
    gateway: Gateway, model: ScriptedModel, case: str, question: str, expected: Sequence[str]
) -> list[str]:
    model.replies = [Reply(["I do not know."])]
    model.requests.clear()
    await gateway.request("POST", "/v1/qa", json={"question": question, "collection_ids": [case]})
    told = "\n".join(str(message["content"]) for asked in model.requests for message in asked["messages"])
    return [f"{case}: the prompt lacks {words!r}" for words in expected if words not in told]


async def _stopped(gateway: Gateway, model: ScriptedModel) -> list[str]:
    """A turn that is cancelled while it is written, and a question that follows it."""
    thread_id = (await gateway.request("POST", "/v1/threads", json={}))["id"]
    model.replies = [Reply(["The Halcyon ", "was built ", "in 1962 [1]."], gate=asyncio.Event(), gate_at=2)]
    question = {"message": "When was the Halcyon built?", "thread_id": thread_id}
    async with gateway.events("POST", f"/v1/collections/{_SHIP}/chat", json=question) as (run_id, events):
        async for event in events:
            if event.kind == "token":
                await gateway.request("POST", f"/v1/runs/{run_id}/cancel")
    messages = (await gateway.request("GET", f"/v1/threads/{thread_id}"))["messages"]
    if [each.get("run_status") for each in messages] != [None, "cancelled"]:
        return [f"{_THREADS}: the thread holds {messages}"]
    model.replies = [Reply(["Ines Varg [1]."])]
    model.requests.clear()
    follow_up = {"message": "Who is its captain?", "thread_id": thread_id}
    async with gateway.events("POST", f"/v1/collections/{_SHIP}/chat", json=follow_up) as (_, events):
        async for _ in events:
            pass
    told = "\n".join(str(message["content"]) for asked in model.requests for message in asked["messages"])
    return [] if "When was the Halcyon built?" in told else [f"{_THREADS}: the follow-up goes out without the question"]
