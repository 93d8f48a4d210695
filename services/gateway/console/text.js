// Text of answers and passages. Offsets of the API count characters (code points), JavaScript strings count UTF-16 units.

/** The answer after a piece came: what stood from `offset` on is replaced by it. */
export function applyToken(answer, { text, offset }) {
  const characters = Array.from(answer);
  return characters.slice(0, offset).join("") + text;
}

const MARK = /\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/g;

/**
 * An answer as pieces: {text} and {number}. A number that `isKnown` does not know stays text; while the answer is still
 * coming, a mark that has only begun is held back.
 */
export function pieces(answer, isKnown, unfinished = false) {
  const shown = unfinished ? answer.replace(/\s?\[[\d,\s]*$/, "") : answer;
  const result = [];
  let end = 0;
  const text = (value) => value && result.push({ text: value });
  for (const match of shown.matchAll(MARK)) {
    const numbers = match[1].split(",").map(Number);
    if (!numbers.every(isKnown)) continue;
    text(shown.slice(end, match.index).replace(/[ \t]+$/, ""));
    numbers.forEach((number) => result.push({ number }));
    end = match.index + match[0].length;
  }
  text(shown.slice(end));
  return result;
}

/** A passage as [before, quote, after]; an empty quote means that the whole passage is meant. */
export function quoted(text, start = 0, end = 0) {
  const characters = Array.from(text);
  if (!(start < end && end <= characters.length)) return ["", text, ""];
  return [characters.slice(0, start), characters.slice(start, end), characters.slice(end)].map((part) => part.join(""));
}

/**
 * The texts around a passage, {before, after}. Neighbours share some sentences, as their spans in the document say: those stand with the
 * passage, or with the neighbour that is nearer to it, and are left out of the other.
 */
export function joined({ chunk, before, after }) {
  const result = { before: [], after: [] };
  let { char_start: start, char_end: end } = chunk;
  for (const each of [...before].reverse()) {
    const text = Array.from(each.text);
    result.before.unshift(text.slice(0, Math.max(0, text.length - Math.max(0, each.char_end - start))).join("").trimEnd());
    start = Math.min(start, each.char_start);
  }
  for (const each of after) {
    result.after.push(Array.from(each.text).slice(Math.max(0, end - each.char_start)).join("").trimStart());
    end = Math.max(end, each.char_end);
  }
  return { before: result.before.filter(Boolean), after: result.after.filter(Boolean) };
}

/** Where a passage stands: "Page 3 · Terms › Notice", of a message "Harbour · Ann · 2026-01-15 09:30 · message 17". */
export function place({ page, heading_path: headings, origin }) {
  const path = (headings || []).join(" › ");
  const { channel, author, date, message_id: id } = origin || {};
  const written = (date || "").slice(0, 16).replace("T", " ");
  const told = [channel, author, written, id && `message ${id}`].filter((part) => part && !path.includes(part));
  return [page ? `Page ${page}` : "", path, ...told].filter(Boolean).join(" · ");
}

/** An argument of a tool, as a person reads it. */
export function argumentText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What a step took, as the `usage` event has it: "1200 + 56 tokens · $0.0021 · 1.2 s · qwen". */
export function stepCost({ seconds, prompt_tokens: read, completion_tokens: written, cost_usd: cost, model }) {
  const tokens = read || written ? `${read || 0} + ${written || 0} tokens` : "";
  return [tokens, cost ? dollars(cost) : "", seconds ? duration(seconds) : "", model || ""].filter(Boolean).join(" · ");
}

/** 0.00213 → "$0.0021", 1.5 → "$1.50". */
export function dollars(amount) {
  return `$${amount.toFixed(amount < 1 ? 4 : 2)}`;
}

const END_LENGTH = 14;
const JOINED_SCRIPTS = /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Nko}]/u;

/**
 * A name as [start, end]: where there is no room for both, the start gives way, so that names which begin alike can be told apart. The
 * end is empty for a short name, and for one in a script whose letters join: they would look different at the cut.
 */
export function startAndEnd(name) {
  const letters = Array.from(new Intl.Segmenter().segment(name), ({ segment }) => segment);
  if (letters.length < 2 * END_LENGTH || JOINED_SCRIPTS.test(name)) return [name, ""];
  return [letters.slice(0, -END_LENGTH), letters.slice(-END_LENGTH)].map((part) => part.join(""));
}

/** 182044 → "178 kB". */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const [value, unit] = bytes < 1024 ** 2 ? [bytes / 1024, "kB"] : [bytes / 1024 ** 2, "MB"];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

/** 0.0481 → "48 ms", 2.31 → "2.3 s", 42.4 → "42 s". */
export function duration(seconds) {
  if (seconds < 0.95) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
}
