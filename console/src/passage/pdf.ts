// pdf.js, loaded when a page is shown.

import type { PDFDocumentProxy } from "pdfjs-dist";
import { Away, call } from "../api/client";
import { makeWorker } from "../api/worker";

let library: Promise<typeof import("pdfjs-dist")> | null = null;
const documents = new Map<string, Promise<PDFDocumentProxy>>();
const KEPT = 4;

async function loaded(): Promise<typeof import("pdfjs-dist")> {
  const pdf = await import("pdfjs-dist");
  pdf.GlobalWorkerOptions.workerPort = makeWorker("pdf");
  return pdf;
}

/** A document of the server, opened; the last few stay open. */
export async function openPdf(documentId: string): Promise<PDFDocumentProxy> {
  const known = documents.get(documentId);
  if (known) return known;
  const opened = open(documentId);
  documents.set(documentId, opened);
  opened.catch(() => documents.delete(documentId));
  const oldest = documents.keys().next().value;
  if (documents.size > KEPT && oldest) {
    documents.get(oldest)?.then((document) => document.loadingTask.destroy());
    documents.delete(oldest);
  }
  return opened;
}

async function open(documentId: string): Promise<PDFDocumentProxy> {
  library ||= loaded();
  const [pdf, response] = await Promise.all([library, call(`/v1/documents/${encodeURIComponent(documentId)}/content`)]);
  const data = await response.arrayBuffer().catch(() => {
    throw new Away(); // the connection broke in the middle of the file
  });
  return pdf.getDocument({
    data,
    cMapUrl: "/console/pdf/cmaps/",
    cMapPacked: true,
    standardFontDataUrl: "/console/pdf/standard_fonts/",
    wasmUrl: "/console/pdf/wasm/",
    useWasm: false,
  }).promise;
}
