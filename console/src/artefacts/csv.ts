// A table as CSV.

import type { Cell } from "./bodies";

/** RFC 4180. A cell that a spreadsheet would take for a formula is kept from being one. */
export function csvOf(columns: string[], rows: Cell[][]): string {
  const cell = (value: Cell | undefined) => {
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => columns.map((_, at) => cell(row[at])).join(",")).join("\r\n");
}
