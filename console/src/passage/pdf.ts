// pdf.js, loaded when a page is shown. The policy of the page allows one maker of addresses of scripts: the one for its worker.

import type { PDFDocumentProxy } from "pdfjs-dist";
import workerAddress from "pdfjs-dist/build/pdf.worker.min.mjs?url";
import { Away, call } from "../api/client";

interface TrustedTypes {
  createPolicy: (name: string, rules: { createScriptURL: (address: string) => string }) => { createScriptURL: (address: string) => string };
}

let library: Promise<typeof import("pdfjs-dist")> | null = null;
const documents = new Map<string, Promise<PDFDocumentProxy>>();
const KEPT = 4;

async function loaded(): Promise<typeof import("pdfjs-dist")> {
  const pdf = await import("pdfjs-dist");
  const trusted = (window as unknown as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = trusted?.createPolicy("groundwork", {
    createScriptURL: (address) => {
      if (new URL(address, location.href).href !== new URL(workerAddress, location.href).href)
        throw new TypeError("not the worker of pdf.js");
      return address;
    },
  });
  pdf.GlobalWorkerOptions.workerPort = new Worker(policy ? policy.createScriptURL(workerAddress) : workerAddress, { type: "module" });
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
