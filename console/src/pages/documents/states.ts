// States of documents in words, and which failures another try may help.

import type { TFunction } from "i18next";
import type { Document } from "../../api/types";

const STAGES = ["parse", "clean", "chunk", "embed", "index", "activate"] as const;

/** Reasons of a failure that stays the same whenever that file is read; what helps is another file. */
const FINAL = new Set([
  "ARCHIVE_BOMB",
  "EMPTY_FILE",
  "FILE_DAMAGED",
  "FILE_ENCRYPTED",
  "FILE_LOST",
  "IMAGE_BROKEN",
  "IMAGE_TOO_LARGE",
  "MAIL_BROKEN",
  "NO_TEXT",
  "OCR_SCRIPT_UNSUPPORTED",
  "PARSE_CRASHED",
  "PARSE_TIMEOUT",
  "PARSE_TOO_LARGE",
  "PDF_BROKEN",
  "PDF_ENCRYPTED",
  "TOO_MANY_PAGES",
  "UNSAFE_XML",
  "UNSUPPORTED_TYPE",
]);

export function statusWords({ status, stage }: Pick<Document, "status" | "stage">, t: TFunction): string {
  const known = STAGES.find((each) => each === stage);
  if (status === "processing") return known ? t(`documents.stage_${known}`) : t("documents.status_processing");
  if (status === "queued" || status === "ready" || status === "failed" || status === "kept") return t(`documents.status_${status}`);
  return status;
}

/** Whether another try may help. */
export function mayRetry({ status, error }: Pick<Document, "status" | "error">): boolean {
  return (status === "failed" || Boolean(error)) && !FINAL.has(error?.reason ?? "");
}
