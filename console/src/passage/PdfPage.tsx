// A page of a PDF with the cited words outlined: by the boxes that ingestion kept, or where there are none by looking for the words.

import type { PDFPageProxy } from "pdfjs-dist";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Citation } from "../api/types";
import { Failure, IconButton } from "../parts";
import { boxesByPage, quoted } from "../text";
import { findWords, type Box } from "./words";
import { openPdf } from "./pdf";

const ZOOMS = [1, 1.5, 2, 3];

export default function PdfPage({ documentId, citation }: { documentId: string; citation: Citation }) {
  const { t } = useTranslation();
  const cited = boxesByPage(citation.bounding_boxes);
  const first = [...cited.keys()][0] ?? citation.page ?? 1;
  const [number, setNumber] = useState(first);
  const [count, setCount] = useState(0);
  const [zoom, setZoom] = useState(0);
  const [problem, setProblem] = useState("");
  const [page, setPage] = useState<PDFPageProxy | null>(null);
  useEffect(() => {
    let isLeft = false;
    setProblem("");
    openPdf(documentId)
      .then(async (pdf) => {
        const next = await pdf.getPage(Math.min(Math.max(1, number), pdf.numPages));
        if (isLeft) return;
        setCount(pdf.numPages);
        setPage(next);
      })
      .catch((error: Error) => !isLeft && setProblem(error.message));
    return () => {
      isLeft = true;
    };
  }, [documentId, number]);
  return (
    <div className="pdf">
      <div className="pdf-bar">
        <IconButton label={t("pdf.previous")} icon="back" isDisabled={number <= 1} onPress={() => setNumber(number - 1)} />
        <span>{count ? t("pdf.pageOf", { page: number, count }) : t("common.loading")}</span>
        <IconButton label={t("pdf.next")} icon="next" isDisabled={!count || number >= count} onPress={() => setNumber(number + 1)} />
        <IconButton label={t("pdf.larger")} icon="expand" onPress={() => setZoom((zoom + 1) % ZOOMS.length)} />
      </div>
      <Failure>{problem && t("pdf.failed", { why: problem })}</Failure>
      {page && (
        <Drawn
          page={page}
          zoom={ZOOMS[zoom] ?? 1}
          citation={citation}
          boxes={cited.get(number) ?? []}
          mayLook={cited.size === 0 && number === first}
        />
      )}
    </div>
  );
}

function Drawn({
  page,
  zoom,
  citation,
  boxes: given,
  mayLook,
}: {
  page: PDFPageProxy;
  zoom: number;
  citation: Citation;
  boxes: Box[];
  mayLook: boolean;
}) {
  const { t } = useTranslation();
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const [found, setFound] = useState<Box[]>([]);
  const size = useMemo(() => page.getViewport({ scale: 1 }), [page]);
  useEffect(() => {
    const [width, element] = [frame.current?.clientWidth ?? 0, canvas.current];
    if (!element || !width) return;
    const viewport = page.getViewport({ scale: (width * zoom * Math.max(1, devicePixelRatio)) / size.width });
    element.width = viewport.width;
    element.height = viewport.height;
    const drawing = page.render({ canvas: element, viewport });
    drawing.promise.catch(() => {}); // another drawing has taken its place
    return () => drawing.cancel();
  }, [page, zoom, size.width]);
  useEffect(() => {
    setFound([]);
    if (!mayLook) return;
    const [, quote] = quoted(citation.text, citation.quote_start, citation.quote_end);
    page
      .getTextContent()
      .then((content) =>
        setFound(
          findWords(
            content.items.filter((item) => "str" in item),
            quote,
            size.transform,
          ),
        ),
      )
      .catch(() => {});
  }, [page, mayLook, citation, size]);
  const boxes = given.length ? given : found;
  useEffect(() => {
    frame.current?.querySelector(".pdf-box")?.scrollIntoView({ block: "center", inline: "center" });
  }, [boxes, page]);
  return (
    // A page is drawn from the left whatever the language around it is: a canvas takes the direction of its text from here.
    <section
      className="pdf-scroll"
      ref={frame}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
      tabIndex={0}
      dir="ltr"
      aria-label={t("pdf.page")}
      data-testid="pdf-page"
      data-page={page.pageNumber}
    >
      <svg
        className="pdf-sheet"
        viewBox={`0 0 ${size.width} ${size.height}`}
        width={`${zoom * 100}%`}
        role="img"
        aria-label={t("pdf.outlined", { count: boxes.length })}
      >
        <foreignObject x="0" y="0" width={size.width} height={size.height}>
          <canvas ref={canvas} className="pdf-canvas" />
        </foreignObject>
        {boxes.map((box) => (
          <rect
            key={`${box.x0}-${box.y0}`}
            className="pdf-box"
            data-testid="pdf-box"
            x={box.x0 - 1.5}
            y={box.y0 - 1.5}
            width={box.x1 - box.x0 + 3}
            height={box.y1 - box.y0 + 3}
            rx="2"
          />
        ))}
      </svg>
    </section>
  );
}
