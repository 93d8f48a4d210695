"""Tries the browser and the mailbox in a whole system, as its users do, and says what came of it. It is a program that runs in a
network namespace with nothing but loopback: a hole sends nothing anywhere. Its argument is the folder of the models."""

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from kit.testing.openai import Reply, scripted_model
from tests.doubles.imap import USER, MailHost
from tests.in_a_thread import in_a_thread
from tests.integration.api import Api, Event, Json, only
from tests.integration.scripting import calling, observations_in, question_in, rounds_in
from tests.integration.system import Groundwork, running
from tests.service.tools.http_server import Asked, HttpServer, http_server, said

ENTRANCE = """<!doctype html><title>Harbour</title><main id=main></main><a href="/winter">Winter prices</a>
<form action="/book" method=post><label>Name <input name=name></label><button>Book</button></form>
<script>document.getElementById("main").innerHTML = "<p>A boat of up to ten metres pays 42 euros a night.</p>"</script>"""
WINTER = "<!doctype html><title>Winter</title><main><p>In winter the harbour is closed to all visitors.</p></main>"
FEES = "The pilot of the harbour costs sixty crowns."
READ, BOOK, MAIL = "What do the harbour's pages say?", "Book a berth for Ann.", "What does the pilot cost, by my mail?"
SENTENCES = {
    READ: ["A boat of up to ten metres pays 42 euros a night", "In winter the harbour is closed to all visitors"],
    BOOK: ["A berth is booked for Ann"],
    MAIL: [FEES[:-1]],
}


def harbour(asked: Asked) -> bytes:
    match asked.target:
        case "/":
            return said(ENTRANCE, content_type="text/html")
        case "/winter":
            return said(WINTER, content_type="text/html")
        case "/book":
            return said(
                f"<main><p>A berth is booked for {asked.body.decode().removeprefix('name=')}.</p></main>",
                content_type="text/html",
            )
    return said("", "404 Not Found")


def model(address: str) -> Callable[[Json], Reply]:
    """Calls the tools that each question takes, then answers with what it has read."""
    opened = {"do": "open", "url": address}
    calls = {
        READ: [
            (
                "browser_task",
                {"steps": [opened, {"do": "read"}, {"do": "click", "target": "Winter prices"}, {"do": "read"}]},
            )
        ],
        BOOK: [
            (
                "browser_submit",
                {"steps": [opened, {"do": "fill", "target": "Name", "text": "Ann"}, {"do": "submit"}, {"do": "read"}]},
            )
        ],
        MAIL: [("mail_search", {"query": "pilot crowns"}), ("mail_read", {})],
    }

    def reply(request: Json) -> Reply:
        asked, number = question_in(request), rounds_in(request)
        question = next((each for each in calls if each in asked), "")
        if not question:
            return Reply(["Nothing is scripted."])
        observed = "\n".join(observations_in(request))
        if number < len(calls[question]):
            name, arguments = calls[question][number]
            found = re.search(r'"message": ?"([^"]+/\d+-\d+)"', observed)
            return calling((name, {"message": found[1]} if name == "mail_read" and found else arguments))
        return Reply([" ".join(f"{each} [{_number(each, observed)}]." for each in SENTENCES[question])])

    return reply


def _number(sentence: str, observed: str) -> str:
    """Of the last passage that begins before the sentence."""
    before = observed[: observed.rfind(sentence)] if sentence in observed else ""
    return (re.findall(r"\[(\d+)\]", before) or ["99"])[-1]


def main(models_dir: Path) -> Json:
    with (
        tempfile.TemporaryDirectory() as folder,
        in_a_thread(http_server(HttpServer(harbour))) as (site, _),
        in_a_thread(scripted_model(Reply(["Nothing is scripted."]))) as (scripted, _),
        MailHost(Path(folder)).running() as host,
    ):
        asyncio.run(host.put("INBOX", "Fees", FEES))
        scripted.reply_to = model(site.url())
        provider = {"base_url": scripted.base_url, "api_key": "test", "models": {"scripted": {}}, "local": False}
        settings = {
            "GROUNDWORK_LLM_PROVIDERS": json.dumps({"scripted": provider}),
            "GROUNDWORK_VERIFY_JUDGE": "learned",
            "GROUNDWORK_MEMORY": "off",
            "GROUNDWORK_TOOLS_WEB_HOSTS": f"127.0.0.1:{site.port}",
            "GROUNDWORK_EGRESS_ALLOWED_NETWORKS": "127.0.0.0/8",
            "GROUNDWORK_TOOLS_MAIL_URL": f"imaps://127.0.0.1:{host.port}",
            "SSL_CERT_FILE": str(host.authorities_file),
        }
        with (
            running(Groundwork(Path(folder, "data"), models_dir, settings)) as system,
            Api.open(system.base_url) as api,
        ):
            body = {"secret": host.password, "account": USER, "shared": False}
            connected = api.http.put("/v1/connections/mail", json=body).json()
            told = {
                "offered": sorted(each["name"] for each in api.get("/v1/tools")["tools"]),
                "connected": connected.get("account", connected),
                "read": _answer(list(api.converse(READ, tools=["browser_task"]))),
                "mail": _answer(list(api.converse(MAIL, tools=["mail_search", "mail_read"]))),
                "asked_before": sorted({f"{each.method} {each.target}" for each in site.asked}),
            }
            waiting = api.converse_json(BOOK, status=202, tools=["browser_submit"])
            api.decide(waiting["approvals"][0], "allow")
            told["booked"] = _answer(list(api.events("GET", f"/v1/runs/{waiting['run_id']}/events")))
            told["bodies"] = [each.body.decode() for each in site.asked if each.target == "/book"]
            told["log"] = [each for each in system.log("tools").splitlines() if "browser_started" in each]
            return told


def _answer(events: list[Event]) -> Json:
    answer = only(events, "answer").data
    failed = [each.data for each in events if each.kind == "tool_result" and not each.data["ok"]]
    return {"text": answer["text"], "cited": answer["citations"], "failed": failed}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
