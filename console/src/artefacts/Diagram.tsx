// A diagram in its frame, with zoom and pan. Diagrams are drawn one after the other; what cannot be drawn is shown as its outline.

import { useCallback, useEffect, useRef, useState, type PointerEvent } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "../parts";
import { useTheme } from "../shell/theme";

const DRAWN_WITHIN_MS = 60_000;
const ZOOM_STEP = 1.25;
/** The drawing that is under way: the next one waits for it. */
let drawing: Promise<unknown> = Promise.resolve();

interface Drawn {
  width: number;
  height: number;
}

export default function Diagram({ source, outline, title }: { source: string; outline: string; title: string }) {
  const { t } = useTranslation();
  const theme = useTheme();
  const frame = useRef<HTMLIFrameElement>(null);
  const [isReady, setReady] = useState(false);
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [hasFailed, setFailed] = useState(false);
  const [view, setView] = useState({ x: 0, y: 0, zoom: 1 });
  const [grip, setGrip] = useState<{ x: number; y: number } | null>(null);
  useEffect(() => {
    const hear = ({ data, source: from }: MessageEvent) => from === frame.current?.contentWindow && data?.isReady && setReady(true);
    window.addEventListener("message", hear);
    return () => window.removeEventListener("message", hear);
  }, []);
  useEffect(() => {
    const target = frame.current?.contentWindow;
    if (!isReady || !target) return;
    let isLeft = false;
    drawing = drawing
      .then(() => (isLeft ? undefined : drawnIn(target, source, theme === "dark")))
      .then((size) => {
        if (isLeft || size === undefined) return;
        setDrawn(size);
        setFailed(size === null);
      });
    return () => {
      isLeft = true;
    };
  }, [isReady, source, theme]);
  const zoomBy = useCallback((by: number) => setView((before) => ({ ...before, zoom: Math.min(8, Math.max(0.25, before.zoom * by)) })), []);
  const drag = (event: PointerEvent) => {
    if (grip) setView((before) => ({ ...before, x: before.x + event.clientX - grip.x, y: before.y + event.clientY - grip.y }));
    if (grip) setGrip({ x: event.clientX, y: event.clientY });
  };
  if (hasFailed) {
    return (
      <pre className="outline" dir="auto" data-testid="diagram-outline">
        {outline}
      </pre>
    );
  }
  return (
    <figure className="diagram" data-testid="diagram" data-drawn={drawn !== null}>
      <div
        className="diagram-view"
        ref={(element) =>
          setVars(element, {
            "--x": `${view.x}px`,
            "--y": `${view.y}px`,
            "--zoom": String(view.zoom),
            "--tall": `${Math.min(480, Math.max(160, drawn?.height ?? 240))}px`,
          })
        }
      >
        <iframe ref={frame} src="/console/diagram.html" sandbox="allow-scripts" title={title || t("artefact.diagram")} tabIndex={-1} />
        <div
          className="diagram-grip"
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            setGrip({ x: event.clientX, y: event.clientY });
          }}
          onPointerMove={drag}
          onPointerUp={() => setGrip(null)}
        />
      </div>
      <figcaption className="actions">
        <IconButton label={t("artefact.larger")} icon="add" onPress={() => zoomBy(ZOOM_STEP)} />
        <IconButton label={t("artefact.smaller")} icon="reduce" onPress={() => zoomBy(1 / ZOOM_STEP)} />
        <IconButton label={t("artefact.fit")} icon="expand" onPress={() => setView({ x: 0, y: 0, zoom: 1 })} />
      </figcaption>
      <details>
        <summary>{t("artefact.asText")}</summary>
        <pre className="outline" dir="auto">
          {outline}
        </pre>
      </details>
    </figure>
  );
}

/** Custom properties, set as the policy allows: not by an attribute. */
function setVars(element: HTMLElement | null, values: Record<string, string>): void {
  for (const [name, value] of Object.entries(values)) element?.style.setProperty(name, value);
}

function drawnIn(target: Window, source: string, isDark: boolean): Promise<Drawn | null> {
  return new Promise((resolve) => {
    const end = (size: Drawn | null) => {
      clearTimeout(timer);
      window.removeEventListener("message", hear);
      resolve(size);
    };
    const hear = ({ data, source: from }: MessageEvent) => {
      if (from !== target || data?.isDrawn === undefined) return;
      end(data.isDrawn ? { width: data.width, height: data.height } : null);
    };
    const timer = setTimeout(() => end(null), DRAWN_WITHIN_MS);
    window.addEventListener("message", hear);
    target.postMessage({ source, isDark }, "*"); // the frame has no origin that could be named
  });
}
