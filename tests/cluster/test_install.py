"""A first installation: ready, tested by its own test, used by a program and by a person."""

import time
import uuid
from statistics import median

import pytest
from playwright.sync_api import Browser, FilePayload, expect

from kit.testing.pdf_files import pdf_of
from tests.browsing import WAIT_MS, browser, plain_http_is_expected, refusals_are_expected, upload_files, visiting
from tests.cluster.cluster import Cluster
from tests.cluster.conftest import Installed
from tests.cluster.facts import User
from tests.cluster.release import Release
from tests.cluster.report import Report
from tests.integration.conftest import REPORT_PAGES

__all__ = ["browser"]
pytestmark = pytest.mark.timeout(1200)
STATELESS = ("gateway", "orchestrator", "reranker", "ingest", "ingest-worker", "memory", "tools")
QUESTION = "Why was the ferry Wangerooge docked?"
QUESTIONS = 30


def test_small_values_become_ready_under_the_restricted_standard(installed: Installed, report: Report) -> None:
    with report.section("Installation", "`helm install --wait` in a namespace that enforces `restricted`.") as section:
        cluster = installed.release.cluster
        pods = cluster.pods()
        assert all(pod.is_ready for pod in pods), cluster.describe()
        counts = {name: len([pod for pod in pods if pod.component == name]) for name in {pod.component for pod in pods}}
        assert counts["nats"] == 3
        assert all(counts[name] >= 2 for name in STATELESS), counts
        assert len({pod.node for pod in pods if pod.component == "nats"}) == min(3, len(cluster.objects("nodes")))
        section.figure("pods", len(pods))
        section.figure("seconds until all are ready", installed.ready_s)


def test_notes_say_what_to_do_next(installed: Installed) -> None:
    assert "helm test" in installed.notes
    assert "groundwork-gateway" in installed.notes


def test_own_test_of_the_release_passes(release: Release) -> None:
    assert "Phase:          Succeeded" in release.test()


def test_uploaded_pdf_is_cited(release: Release, operator_key: str) -> None:
    with release.api(operator_key) as api:
        document = api.ingest(api.new_collection(), "report.pdf", pdf_of(REPORT_PAGES))
        answer = api.qa(document["collection_id"], QUESTION)
    assert "propeller shaft" in answer["answer"]
    assert [each["document_id"] for each in answer["citations"]] == [document["id"]]
    assert answer["citations"][0]["page"] == 2


def test_every_gateway_address_serves_the_same(release: Release, operator_key: str) -> None:
    title = uuid.uuid4().hex
    with release.api(operator_key) as api:
        thread_id = api.post("/v1/threads", {"title": title})["id"]
    for address in [*release.addresses, *release.gateway_addresses()]:
        with release.api(operator_key, address) as api:
            assert api.get(f"/v1/threads/{thread_id}")["title"] == title


def test_console_opens_in_a_browser_and_answers(release: Release, browser: Browser, operator_key: str) -> None:
    gate = uuid.uuid4().hex[:8]
    name = f"report-{gate}.pdf"
    pages = (("Locks", "", "All locks are open at night."), ("Gates", "", f"Gate {gate} was shut over a bent hinge."))
    with visiting(browser, release.addresses[0]) as visit:
        page = visit.page
        page.get_by_test_id("key-input").fill(operator_key)
        page.get_by_test_id("key-submit").click()
        expect(page.get_by_test_id("key-dialog")).to_be_hidden()
        page.goto("/documents")
        upload_files(page, FilePayload(name=name, mimeType="application/pdf", buffer=pdf_of(pages)))
        row = page.get_by_test_id("document-row").filter(has_text=name)
        expect(row).to_have_attribute("data-status", "ready", timeout=3 * WAIT_MS)
        page.get_by_test_id("new-conversation").click()
        page.get_by_test_id("question-input").fill(f"Why was gate {gate} shut?")
        page.get_by_test_id("ask-button").click()
        expect(page.get_by_test_id("answer")).to_contain_text("bent hinge", timeout=3 * WAIT_MS)
        page.get_by_test_id("answer").get_by_test_id("citation").first.click()
        passage = page.get_by_test_id("passage")
        expect(passage).to_contain_text(name)
        expect(passage.get_by_test_id("pdf-page")).to_be_visible(timeout=WAIT_MS)
        passage.get_by_test_id("look-text").check(force=True)
        expect(passage).to_contain_text("bent hinge")
        refusals_are_expected(visit)
        plain_http_is_expected(visit)


@pytest.mark.long
def test_time_and_memory_of_a_quiet_installation(release: Release, users: list[User], report: Report) -> None:
    about = (
        f"The small values without a language model; {QUESTIONS} questions, one after the other, through a node's port."
    )
    with report.section("At rest", about) as section:
        user, seconds = users[0], []
        with release.api(user.key) as api:
            for number in range(QUESTIONS):
                fact, began = user.facts[number % len(user.facts)], time.monotonic()
                answer = api.qa(user.collection_id, fact.question)
                seconds.append(time.monotonic() - began)
                assert str(fact.berths) in answer["answer"]
        section.figure("milliseconds of a question, median", 1000 * median(seconds))
        section.figure("memory of all pods, MiB", memory_mib(release.cluster))


def memory_mib(cluster: Cluster) -> int:
    """Of all containers of the namespace, as the metrics server has it."""
    lines = cluster.kubectl("top", "pods", "--no-headers").splitlines()
    return sum(int(line.split()[2].removesuffix("Mi")) for line in lines)
