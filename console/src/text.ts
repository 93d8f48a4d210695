// Text of answers and passages. Offsets of the API count characters (code points), JavaScript strings count UTF-16 units.

import i18next from "i18next";
import type { BoundingBox, Citation } from "./api/types";

/**
 * Parts of a line with dots between them; empty ones are left out. In a right-to-left language each part stands alone,
 * so that the Latin unit of one part does not draw the number of the next to its side.
 */
export function dotted(parts: (string | null | undefined | false)[]): string {
  const isolated = i18next.dir() === "rtl" ? (part: string) => `\u2068${part}\u2069` : (part: string) => part;
  return parts
    .filter((part): part is string => Boolean(part))
    .map(isolated)
    .join(" · ");
}

/** A text to be taken elsewhere: without the marks that keep its parts in their own direction here. */
export function withoutIsolates(text: string): string {
  return text.replace(/[\u2066-\u2069]/g, "");
}

/** The answer after a piece came: what stood from `offset` on is replaced by it. */
export function applyToken(answer: string, { text, offset }: { text: string; offset: number }): string {
  return cut(answer, 0, offset) + text;
}

/** The characters from `start` on and before `end`. */
export function cut(text: string, start: number, end?: number): string {
  return Array.from(text).slice(start, end).join("");
}

export type Piece = { text: string } | { number: number };

const MARK = /\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/g;

/** A text as pieces of text and numbers of citations. A number that `isKnown` does not know stays text. */
export function pieces(text: string, isKnown: (number: number) => boolean): Piece[] {
  const result: Piece[] = [];
  let end = 0;
  const add = (value: string) => value && result.push({ text: value });
  for (const match of text.matchAll(MARK)) {
    const numbers = (match[1] ?? "").split(",").map(Number);
    if (!numbers.every(isKnown)) continue;
    add(text.slice(end, match.index).replace(/[ \t]+$/, ""));
    for (const number of numbers) result.push({ number });
    end = match.index + match[0].length;
  }
  add(text.slice(end));
  return result;
}

/** A text that is still coming, without a mark that has only begun. */
export function withoutBegunMark(text: string): string {
  return text.replace(/\s?\[[\d,\s]*$/, "");
}

/** A text without its marks of citations. */
export function withoutMarks(text: string): string {
  return text.replace(/[ \t]*\[\d{1,3}(?:\s*,\s*\d{1,3})*\]/g, "");
}

/** A passage as [before, quote, after]; an empty quote means that the whole passage is meant. */
export function quoted(text: string, start = 0, end = 0): [string, string, string] {
  const characters = Array.from(text);
  if (!(start < end && end <= characters.length)) return ["", text, ""];
  const [before, quote, after] = [characters.slice(0, start), characters.slice(start, end), characters.slice(end)].map((part) =>
    part.join(""),
  );
  return [before ?? "", quote ?? "", after ?? ""];
}

interface Spanned {
  text: string;
  char_start: number;
  char_end: number;
}

/**
 * The texts around a passage. Neighbours share some sentences, as their spans in the document say: those stand with the passage, or
 * with the neighbour that is nearer to it, and are left out of the other.
 */
export function joined<T extends Spanned>({
  chunk,
  before,
  after,
}: {
  chunk: T;
  before: T[];
  after: T[];
}): { before: string[]; after: string[] } {
  const result = { before: [] as string[], after: [] as string[] };
  let { char_start: start, char_end: end } = chunk;
  for (const each of [...before].reverse()) {
    const text = Array.from(each.text);
    result.before.unshift(
      text
        .slice(0, Math.max(0, text.length - Math.max(0, each.char_end - start)))
        .join("")
        .trimEnd(),
    );
    start = Math.min(start, each.char_start);
  }
  for (const each of after) {
    result.after.push(
      Array.from(each.text)
        .slice(Math.max(0, end - each.char_start))
        .join("")
        .trimStart(),
    );
    end = Math.max(end, each.char_end);
  }
  return { before: result.before.filter(Boolean), after: result.after.filter(Boolean) };
}

/** The address of a passage that was read on the web; empty for one of a document. */
export function webAddressOf({ document_id: id, origin }: Pick<Citation, "document_id" | "origin">): string {
  const address = origin?.channel ?? "";
  return id?.startsWith("web-") && /^https?:\/\//.test(address) ? address : "";
}

/** Headings and origin of a passage: "Terms › Notice", of a message "Harbour · Ann · 2026-01-15 09:30". */
export function placeOf({ heading_path: headings = [], origin }: { heading_path?: string[]; origin?: Citation["origin"] }): string {
  const path = headings.join(" › ");
  const written = (origin?.date ?? "").slice(0, 16).replace("T", " ");
  const told = [origin?.channel, origin?.author, written].filter((part): part is string => Boolean(part) && !path.includes(part ?? ""));
  return dotted([path, ...told]);
}

/** An argument of a tool, as a person reads it. */
export function argumentText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

const END_LENGTH = 14;
const JOINED_SCRIPTS = /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Nko}]/u;

/**
 * A name as [start, end]: where there is no room for both, the start gives way, so that names which begin alike can be told apart. The
 * end is empty for a short name, and for one in a script whose letters join: they would look different at the cut.
 */
export function startAndEnd(name: string): [string, string] {
  const letters = Array.from(new Intl.Segmenter().segment(name), ({ segment }) => segment);
  if (letters.length < 2 * END_LENGTH || JOINED_SCRIPTS.test(name)) return [name, ""];
  return [letters.slice(0, -END_LENGTH).join(""), letters.slice(-END_LENGTH).join("")];
}

/** The boxes of these characters of a passage; all where there are none, or where it is not known which characters a box is of. */
export function boxesOf(boxes: BoundingBox[], from: number, to: number): BoundingBox[] {
  const cited = boxes.filter((box) => box.char_start < to && from < box.char_end);
  return cited.length ? cited : boxes;
}

/** The boxes of a citation by page. */
export function boxesByPage(boxes: BoundingBox[]): Map<number, BoundingBox[]> {
  const pages = new Map<number, BoundingBox[]>();
  for (const box of boxes) if (box.page) pages.set(box.page, [...(pages.get(box.page) ?? []), box]);
  return pages;
}
