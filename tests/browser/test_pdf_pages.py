"""The words of a citation on their page of a PDF: where the page outlines them against where the ink is, on files made here."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from groundwork.common.v1 import common_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from playwright.sync_api import Browser, Page, expect

from services.ingest.reading.parsers.pages.pdf import parse_pdf
from tests.browser.site import Site, ask, put, ready
from tests.browsing import visiting
from tests.service.gateway.fakes import answered_run
from tests.unit.ingest.pdf_files import pdf_of_contents

pytestmark = [pytest.mark.browser]

NEAR_POINTS = 2.0
MARGIN_POINTS = 1.5
"""Between the words and their outline."""
CITED = "A notice takes effect by the Monday of next week"
INK = """() => {
  const [sheet, canvas, box] = [".pdf-sheet", ".pdf-canvas", ".pdf-box"].map((each) => document.querySelector(each));
  if (!box || !canvas) return null;
  const { width, height } = canvas;
  const [outer, inner] = [sheet, canvas].map((each) => each.getBoundingClientRect());
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  let [x0, y0, x1, y1] = [width, height, 0, 0];
  for (let at = 0; at < pixels.length; at += 4) {
    if (pixels[at] - pixels[at + 1] < 50) continue;
    const [x, y] = [(at / 4) % width, Math.floor(at / 4 / width)];
    [x0, y0, x1, y1] = [Math.min(x0, x), Math.min(y0, y), Math.max(x1, x + 1), Math.max(y1, y + 1)];
  }
  if (!x1) return null;
  const points = sheet.viewBox.baseVal.width / outer.width;
  const across = (x) => (inner.left - outer.left + (x / width) * inner.width) * points;
  const down = (y) => (inner.top - outer.top + (y / height) * inner.height) * points;
  const [x, y, w, h] = ["x", "y", "width", "height"].map((name) => Number(box.getAttribute(name)));
  return { ink: [across(x0), down(y0), across(x1), down(y1)], box: [x, y, x + w, y + h] };
}"""


@dataclass(frozen=True)
class Sheet:
    """A page with one cited line in red among lines in black."""

    rotate: int = 0
    """Degrees by which the file asks for the page to be turned."""
    crop: str = "0 0 612 792"
    """The part of the page that is seen."""
    size: float = 11
    turned: bool = False
    """Whether its lines run upwards."""
    has_boxes: bool = True
    """Whether ingestion kept where the words are; without it the page looks for them."""

    def content(self) -> bytes:
        place = "0 1 -1 0 320 180" if self.turned else "1 0 0 1 150 420"
        lines = [("0 g", 2), ("0 g", 1), ("1 0 0 rg", 0), ("0 g", -1)]
        words = {0: CITED}
        stream = "".join(
            f"{colour} BT /F1 {self.size} Tf {place} Tm 0 {step * self.size * 1.6} Td ({words.get(step, 'Other words')}) Tj ET\n"
            for colour, step in lines
        )
        return pdf_of_contents([stream], rotate=self.rotate, crop=self.crop)


CROPS = ("0 0 612 792", "60 90 500 700")
SHEETS = [
    *(Sheet(rotate, crop) for rotate in (0, 90, 180, 270) for crop in CROPS),
    *(Sheet(rotate, crop, has_boxes=False) for rotate in (0, 90, 180, 270) for crop in CROPS),
    *(Sheet(size=size) for size in (8, 16)),
    *(Sheet(turned=True, has_boxes=each) for each in (True, False)),
]


def boxes_of(sheet: Sheet, path: Path) -> Iterator[common_pb2.BoundingBox]:
    """Where ingestion finds the cited line."""
    path.write_bytes(sheet.content())
    for block in parse_pdf(path, path.name).blocks if sheet.has_boxes else ():
        for line in block.lines:
            if CITED in block.text[line.start : line.end]:
                x0, y0, x1, y1 = line.box
                yield common_pb2.BoundingBox(page=line.page, x0=x0, y0=y0, x1=x1, y1=y1)


def test_cited_words_are_outlined_where_they_stand_in_20_files(browser: Browser, site: Site, tmp_path: Path) -> None:
    assert len(SHEETS) == 20
    log = answered_run()
    answer = log[5].answer
    del answer.citations[:]
    answer.text = " ".join(f"It is so [{number}]." for number in range(1, 21))
    files = {number: sheet.content() for number, sheet in enumerate(SHEETS, 1)}
    put(site, *(ready(number, name=f"{number}.pdf", size_bytes=len(file)) for number, file in files.items()))
    for number, sheet in enumerate(SHEETS, 1):
        boxes = list(boxes_of(sheet, tmp_path / f"{number}.pdf"))
        assert len(boxes) == sheet.has_boxes, sheet
        site.world.ingest.files[f"d{number:07}"] = files[number]
        answer.citations.append(
            run_pb.Citation(
                number=number,
                document_id=f"d{number:07}",
                document_name=f"{number}.pdf",
                chunk_id="c1",
                text=CITED,
                page=1,
                bounding_boxes=boxes,
            )
        )
    site.world.orchestrator.log = log
    with visiting(browser, site.base_url) as visit:
        visit.expected.add("willReadFrequently")  # the test reads the canvas that the page draws
        page = visit.page
        page.set_viewport_size({"width": 1400, "height": 900})
        ask(page)
        page.get_by_test_id("answer").get_by_test_id("citation").first.click()
        measured = []
        for number, sheet in enumerate(SHEETS, 1):
            expect(page.get_by_test_id("passage").locator("h2")).to_have_text(f"{number}.pdf")
            measured.append((sheet, *outlined(page)))
            page.keyboard.press("n")
    far = {
        sheet: (ink, box)
        for sheet, ink, box in measured
        if any(abs(one - other) > NEAR_POINTS for one, other in zip(ink, box, strict=True))
    }
    assert not far


def outlined(page: Page) -> tuple[list[float], list[float]]:
    """Edges of the red ink and of the outline without its margin, in points from the top left of the page as it is shown."""
    expect(page.get_by_test_id("pdf-box")).to_have_count(1)
    found: dict[str, Any] = page.wait_for_function(INK).json_value()
    x0, y0, x1, y1 = found["box"]
    inside = [x0 + MARGIN_POINTS, y0 + MARGIN_POINTS, x1 - MARGIN_POINTS, y1 - MARGIN_POINTS]
    return found["ink"], inside
