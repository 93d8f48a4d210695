// Draws one diagram in the frame that the page has for it. The frame has no origin and no connection; it is told what to draw by a
// message, and answers with the size of the drawing, or with why there is none.

import mermaid from "mermaid";

interface Order {
  source: string;
  isDark: boolean;
}

const place = document.getElementById("diagram");

window.addEventListener("message", async ({ data, source }: MessageEvent<Order>) => {
  if (source !== window.parent || !place || typeof data?.source !== "string") return;
  document.documentElement.dataset.theme = data.isDark ? "dark" : "light";
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    theme: data.isDark ? "dark" : "neutral",
    flowchart: { htmlLabels: false },
    maxTextSize: 50_000,
  });
  try {
    await mermaid.parse(data.source);
    const { svg } = await mermaid.render("drawing", data.source);
    place.innerHTML = svg;
    const box = place.querySelector("svg")?.viewBox.baseVal;
    window.parent.postMessage({ isDrawn: true, width: box?.width ?? 0, height: box?.height ?? 0 }, "*");
  } catch (error) {
    window.parent.postMessage({ isDrawn: false, why: String((error as Error).message ?? error) }, "*");
  }
});

window.parent.postMessage({ isReady: true }, "*");
