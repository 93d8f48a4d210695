"""The console's own logic, run by Node where there is one; and what its files must never contain."""

import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from cli.display.tool_names import AGENTS, CHOSEN_BY, TOOLS, agent_in_words, in_words

CONSOLE = Path(str(resources.files("services.gateway") / "console"))
_NODE = shutil.which("node")
needs_node = pytest.mark.skipif(_NODE is None, reason="skipped: install node to run the console's modules")


def run_script(folder: Path, script: str) -> None:
    for name in ("sse.js", "text.js"):
        shutil.copy(CONSOLE / name, folder / name.replace(".js", ".mjs"))
    assert _NODE
    (folder / "test.mjs").write_text(f'import assert from "node:assert/strict";\n{script}')
    done = subprocess.run([_NODE, "test.mjs"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("name", "words"), [("TOOLS", TOOLS), ("AGENTS", AGENTS), ("CHOSEN_BY", CHOSEN_BY)])
def test_names_have_the_same_words_as_on_the_command_line(name: str, words: dict[str, str]) -> None:
    script = (CONSOLE / "names.js").read_text("utf-8")
    written = script[script.index(f"const {name} = ") :]
    assert json.loads(written[written.index("{") : written.index("};") + 1].replace(" }", "}")) == words


def test_each_agent_has_its_words() -> None:
    agents = {path.stem for path in Path(str(resources.files("services.orchestrator") / "agents")).glob("[a-z]*.py")}
    assert agents | {"research"} == AGENTS.keys()
    assert agent_in_words("quiz", "model") == "Agent: a quiz (the model chose it)"
    assert agent_in_words("tax_advice", "explicit") == "Agent: tax advice (you chose it)"
    assert agent_in_words("reasoning", "default") == ""


@needs_node
def test_steps_are_shown_in_words(tmp_path: Path) -> None:
    shutil.copy(CONSOLE / "names.js", tmp_path / "names.mjs")
    run_script(
        tmp_path,
        """
        import { agentInWords, stepInWords } from "./names.mjs";
        assert.equal(stepInWords("round1/model"), "Round 1: words of the model");
        assert.equal(stepInWords("forced2/model"), "Last answer 2: words of the model");
        assert.equal(stepInWords("draft"), "The answer");
        assert.equal(stepInWords("joined/retrieve"), "Investigations joined: the search");
        assert.equal(stepInWords("odd_step3"), "Odd step");
        assert.equal(agentInWords("quiz", "model"), "Agent: a quiz (the model chose it)");
        assert.equal(agentInWords("reasoning", "default"), "");
        """,
    )


def test_each_tool_has_its_words() -> None:
    toolbox = {path.stem for path in Path(str(resources.files("services.tools") / "toolbox")).glob("[a-z]*.py")}
    assert set(TOOLS) == toolbox
    assert in_words("look_it-up") == "look it up"


@needs_node
def test_events_are_parsed_whatever_pieces_they_come_in(tmp_path: Path) -> None:
    run_script(
        tmp_path,
        r"""
        import { EventParser } from "./sse.mjs";
        const run = ': hi\n\nid: 1\nevent: run\ndata: {"a":1}\n\n';
        const stream = run + 'event: error\r\ndata: x\r\ndata: y\u2028\u2029\u0085\r\n\r\nid: 2\rdata:z\r\r\n';
        const expected = [
          { event: "run", data: '{"a":1}', id: "1" },
          { event: "error", data: "x\ny\u2028\u2029\u0085", id: undefined },
          { event: "message", data: "z", id: "2" },
        ];
        for (let cut = 1; cut <= stream.length; cut += 1) {
          const parser = new EventParser();
          const events = [];
          for (let at = 0; at < stream.length; at += cut) events.push(...parser.push(stream.slice(at, at + cut)));
          assert.deepEqual(events, expected, `cut every ${cut}`);
        }
        """,
    )


@needs_node
def test_dropped_run_is_read_on_after_the_last_event_exactly_once(tmp_path: Path) -> None:
    run_script(
        tmp_path,
        r"""
        import { followRun } from "./sse.mjs";
        const text = (seqs) => seqs.map((n) => `id: ${n}\nevent: ${n === 4 ? "done" : "token"}\ndata: {}\n\n`).join("");
        const answer = (body) => new Response(body, { headers: { "X-Run-Id": "r1" } });
        const asked = [];
        globalThis.fetch = async (path, options) => {
          asked.push([path, options.headers["Last-Event-ID"]]);
          if (asked.length === 1) throw new TypeError("network");
          return answer(text([2, 3, 4]));
        };
        const seen = [];
        const lost = [];
        await followRun({
          start: async () => answer(text([1, 2])),
          onEvent: ({ id }) => seen.push(id),
          onTrouble: (trouble) => trouble && lost.push(trouble),
        });
        assert.deepEqual(seen, ["1", "2", "3", "4"]);
        assert.deepEqual(asked, Array(2).fill(["/v1/runs/r1/events?after=2", "2"]));
        assert.equal(lost.length, 2);
        """,
    )


@needs_node
def test_a_refused_request_is_repeated_with_another_key_and_given_up_without(tmp_path: Path) -> None:
    run_script(
        tmp_path,
        r"""
        import { call, useKeys } from "./sse.mjs";
        const problem = (status, reason) => new Response(JSON.stringify({ reason, detail: reason }), { status });
        const shown = [];
        globalThis.fetch = async (_, { method, headers }) => {
          shown.push([method, headers.Accept, headers.Authorization]);
          return headers.Authorization === "Bearer right" ? new Response("done") : problem(401, "API_KEY_INVALID");
        };
        const given = ["wrong", "right"];
        let key = "";
        const refusals = [];
        useKeys({
          headers: () => (key ? { Authorization: `Bearer ${key}` } : {}),
          another: async (_, { reason }) => Boolean(refusals.push(reason) && (key = given.shift())),
        });
        const options = { method: "POST", headers: { Accept: "x" } };
        assert.equal(await (await call("/v1/qa", options)).text(), "done");
        assert.deepEqual(shown, [["POST", "x", undefined], ["POST", "x", "Bearer wrong"], ["POST", "x", "Bearer right"]]);
        assert.deepEqual(refusals, ["API_KEY_INVALID", "API_KEY_INVALID"]);
        key = "wrong";
        await assert.rejects(call("/v1/qa", options), { reason: "API_KEY_INVALID" });
        globalThis.fetch = async () => problem(403, "SCOPE_MISSING");
        await assert.rejects(call("/v1/qa"), { reason: "SCOPE_MISSING" });
        assert.equal(refusals.length, 3);
        """,
    )


@needs_node
def test_pieces_marks_and_quotes_count_characters_as_the_api_does(tmp_path: Path) -> None:
    run_script(
        tmp_path,
        r"""
        import { applyToken, argumentText, dollars, pieces, quoted, place, size, startAndEnd, stepCost } from "./text.mjs";
        assert.equal(applyToken("a🙂b", { text: "c", offset: 3 }), "a🙂bc");
        assert.equal(applyToken("a🙂bcd", { text: "X", offset: 2 }), "a🙂X");
        const known = (number) => number <= 2;
        assert.deepEqual(pieces("Four weeks [1][2]. See [9].", known), [
          { text: "Four weeks" }, { number: 1 }, { number: 2 }, { text: ". See [9]." },
        ]);
        assert.deepEqual(pieces("So [1, 2] it is", known), [{ text: "So" }, { number: 1 }, { number: 2 }, { text: " it is" }]);
        assert.deepEqual(pieces("Four weeks [1", known, true), [{ text: "Four weeks" }]);
        assert.deepEqual(quoted("a🙂bc", 1, 3), ["a", "🙂b", "c"]);
        assert.deepEqual(quoted("abc", 2, 2), ["", "abc", ""]);
        assert.equal(place({ page: 3, heading_path: ["Terms", "Notice"] }), "Page 3 · Terms › Notice");
        assert.equal(place({ page: null, heading_path: [] }), "");
        assert.equal(size(182044), "178 kB");
        assert.deepEqual(startAndEnd("docs/adr/0020-token-vectors.md"), ["docs/adr/0020-to", "ken-vectors.md"]);
        assert.deepEqual(startAndEnd("👩‍👩‍👧".repeat(28)), Array(2).fill("👩‍👩‍👧".repeat(14)));
        assert.deepEqual(startAndEnd("handbook.md"), ["handbook.md", ""]);
        assert.deepEqual(startAndEnd("مرحبا".repeat(9)), ["مرحبا".repeat(9), ""]);
        assert.deepEqual([argumentText("a b"), argumentText(3), argumentText({ a: [1] })], ["a b", "3", '{"a":[1]}']);
        assert.deepEqual([dollars(0.00213), dollars(1.5)], ["$0.0021", "$1.50"]);
        const step = { seconds: 1.24, prompt_tokens: 1200, completion_tokens: 0, cost_usd: 0.01, model: "qwen" };
        assert.equal(stepCost(step), "1200 + 0 tokens · $0.0100 · 1.2 s · qwen");
        assert.equal(stepCost({ seconds: null, cost_usd: null }), "");
        """,
    )


def test_no_data_ever_becomes_markup_and_nothing_comes_from_elsewhere() -> None:
    for path in CONSOLE.iterdir():
        text = path.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), path.name
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, path.name
    page = (CONSOLE / "index.html").read_text()
    assert " style=" not in page
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=", page)


@pytest.mark.parametrize(
    "name", ["file-input", "question-input", "ask-button", "answer", "passage", "trace", "approvals"]
)
def test_page_has_the_handles_that_browser_tests_use(name: str) -> None:
    assert f'data-testid="{name}"' in (CONSOLE / "index.html").read_text()


def test_every_element_that_the_modules_look_up_is_on_the_page() -> None:
    def on_page(name: str) -> set[str]:
        return set(re.findall(r'\bid="([\w-]+)"', (CONSOLE / name).read_text()))

    def wanted(*names: str) -> set[str]:
        return {each for name in names for each in re.findall(r'byId\("([\w-]+)"\)', (CONSOLE / name).read_text())}

    assert wanted(*(path.name for path in CONSOLE.glob("*.js") if path.name != "callback.js")) <= on_page("index.html")
    assert wanted("callback.js", "key.js") <= on_page("callback.html")


def test_no_other_try_is_offered_for_a_file_that_ingest_rejects_for_good() -> None:
    may_help = {"OCR_MISSING", "TOO_MANY_CHUNKS"}  # until another setting allows it
    ingest = Path(str(resources.files("services.ingest")))
    rejections = (re.findall(r'DocumentRejected\(\s*"([A-Z_]+)"', path.read_text()) for path in ingest.rglob("*.py"))
    final = re.search(r"const FINAL = new Set\(\[(.*?)\]", (CONSOLE / "documents.js").read_text(), re.DOTALL)
    assert final
    assert set(re.findall(r"[A-Z_]+", final[1])) == {reason for each in rejections for reason in each} - may_help


@needs_node
def test_verdict_is_two_statements_and_a_refusal_shows_what_is_closest(tmp_path: Path) -> None:
    _with_doubles(tmp_path, "verdicts", "claims")
    run_script(
        tmp_path,
        r"""
        import { closest, confidence, conflicts } from "./verdicts.mjs";
        import { support } from "./claims.mjs";
        const quoted = { support_status: "supported", method: "extractive", citations: [{}], answer_status: "uncertain",
                         answer_confidence: 0.554, closest: [] };
        assert.match(support(quoted).text, /word for word/);
        assert.match(confidence(quoted).text, /^May answer your question.*\(55 %\)\.$/);
        const refused = { support_status: "insufficient", method: "extractive", citations: [], answer_status: "unlikely",
                          answer_confidence: 0.1, closest: [{ text: "One. Two.", quote_start: 5, quote_end: 9,
                          document_name: "a.md", page: null, heading_path: [] }] };
        assert.equal(support(refused).text, "");
        assert.equal(confidence(refused).text, "");
        assert.equal(closest(refused)[0].parts[0].parts.at(-1).parts[0], "Two.");
        const sides = [{ value: "62", citation: 1, date: "2024" }, { value: "45", citation: 2, date: "" }];
        const [disputed] = conflicts({ ...quoted, conflicts: [{ what: "It is …", sides }] });
        assert.deepEqual(disputed.parts.slice(1).map((side) => side.parts[0].parts[0]), ["62", "45"]);
        assert.deepEqual(conflicts(refused), []);
        """,
    )


@needs_node
def test_what_is_said_of_claims_is_what_their_judge_has_earned(tmp_path: Path) -> None:
    _with_doubles(tmp_path, "claims")
    run_script(
        tmp_path,
        r"""
        import { claimItems, judgeLine, support } from "./claims.mjs";
        const by = { name: "alignment/1", measured: false, false_passed: 0.17, true_failed: 0.31, claims: 210 };
        const answer = (status, checked_by, more = {}) => ({ support_status: status, method: "model", citations: [{}],
                                                            verification: { sentences: [], checked_by, ...more } });
        assert.match(support(answer("similar_wording", by)).text, /similar.*not checked/);
        assert.doesNotMatch(support(answer("supported", { name: "model/m", claims: 0 })).text, /^Every sentence is carried/);
        assert.match(support(answer("supported", { ...by, measured: true })).text, /^Every sentence is carried/);
        assert.match(support(answer(null, null, { verify: "off" })).text, /Nothing was checked/);
        assert.match(support(answer("partial", by, { removed: 2 })).text, /2 sentences were left out/);
        assert.match(judgeLine({ checked_by: by }), /alignment\/1: 17 % of false claims.*31 %.*210/);
        const [found, invented, none] = claimItems({ sentences: [
          { sentence: "It is high.", verdict: "similar_wording", span: { text: "It is high." } },
          { sentence: "I have sent it.", verdict: "contradicted", is_action: true },
          { sentence: "Hello!", verdict: "no_claim" },
        ] });
        assert.equal(found.parts[0].parts[0], "It is high.");
        assert.equal(invented.parts[1].parts[0], "did not happen");
        assert.equal(none, undefined);
        """,
    )


def _with_doubles(folder: Path, *modules: str) -> None:
    """These modules over a page that only remembers what is made."""
    for name in ("dom", "passage"):
        (folder / f"{name}.mjs").write_text(
            "export const make = (tag, props, ...parts) => ({ tag, parts, addEventListener() {} });\n"
            "export const openPassage = () => {};\n"
        )
    for name in modules:
        script = (CONSOLE / f"{name}.js").read_text("utf-8")
        (folder / f"{name}.mjs").write_text(re.sub(r'"\./(\w+)\.js"', r'"./\1.mjs"', script))
