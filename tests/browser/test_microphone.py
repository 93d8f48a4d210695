"""A spoken question in a real browser, whose microphone hears speech of espeak-ng."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from services.gateway.voice.activity import SpeechStarted, SpeechStopped, speech_finder
from services.gateway.voice.opus import OpusDecoder
from tests.browser.site import Site, asked, serving
from tests.browsing import launched, visiting
from tests.doubles.speech import SpeechService, speech_service
from tests.in_a_thread import in_a_thread
from tests.service.gateway.fakes import answered_run
from tests.speaking import silence, spoken_sentence, wav

pytestmark = [pytest.mark.browser]

QUESTION = "How many days of leave do I have?"
LISTENS = """
const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (wanted) => {
  const stream = await ask(wanted);
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  context.createMediaStreamSource(stream).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  let quiet = 0;
  let loud = false;
  setInterval(() => {
    analyser.getFloatTimeDomainData(samples);
    const isLoud = samples.some((each) => Math.abs(each) > 0.02);
    loud = loud || isLoud;
    quiet = isLoud ? 0 : quiet + 1;
    if (loud && quiet > 20) document.documentElement.dataset.spoken = "yes";
  }, 25);
  return stream;
};
"""
"""Marks the page once the microphone has heard speech, and silence after it."""


@pytest.fixture
def service() -> Iterator[SpeechService]:
    with in_a_thread(speech_service()) as (service, _):
        yield service


@pytest.fixture
def site(service: SpeechService) -> Iterator[Site]:
    with serving(speech_base_url=service.url, speech_transcription_model="whisper-1") as site:
        yield site


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A browser that may hear, and whose microphone is a file."""
    speech = tmp_path / "speech.wav"
    speech.write_bytes(wav(silence(0.8) + spoken_sentence(QUESTION) + silence(2.0)))
    with launched(
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={speech}%noloop",
    ) as browser:
        yield browser


def listen(page: Page) -> None:
    page.add_init_script(LISTENS)


def test_spoken_question_is_written_down_and_answered(site: Site, service: SpeechService, browser: Browser) -> None:
    service.texts, site.world.orchestrator.log = [QUESTION], answered_run()
    with visiting(browser, site.base_url, listen) as visit:
        page = visit.page
        microphone = page.get_by_test_id("microphone")
        microphone.click()
        expect(microphone).to_have_attribute("aria-pressed", "true")
        expect(page.locator("html")).to_have_attribute("data-spoken", "yes")
        microphone.click()
        expect(page.get_by_test_id("question-input")).to_have_value(QUESTION)
        expect(microphone).to_have_attribute("aria-pressed", "false")
        page.get_by_test_id("ask-button").click()
        expect(page.get_by_test_id("answer").last).to_have_attribute("aria-busy", "false")
        expect(page.get_by_test_id("answer").last).to_contain_text("Four weeks")
    assert [question for question, *_ in asked(site)] == [QUESTION]
    ((name, recording),) = service.files
    assert (name, service.forms[0]["language"]) == ("speech.webm", "en")
    found = speech_finder().hear(OpusDecoder().decode(recording))
    assert [type(each) for each in found][:1] == [SpeechStarted], "speech is in what the server hears"
    assert len(found) == 1 or isinstance(found[1], SpeechStopped)
