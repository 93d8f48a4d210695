import { expect, test } from "vitest";
import { csvOf } from "../../src/artefacts/csv";
import { findWords } from "../../src/passage/words";
import {
  applyToken,
  argumentText,
  boxesOf,
  joined,
  pieces,
  placeOf,
  quoted,
  startAndEnd,
  webAddressOf,
  withoutBegunMark,
  withoutMarks,
} from "../../src/text";

test("offsets count characters as the API does", () => {
  expect(applyToken("a🙂b", { text: "c", offset: 3 })).toBe("a🙂bc");
  expect(applyToken("a🙂bcd", { text: "X", offset: 2 })).toBe("a🙂X");
  expect(quoted("a🙂bc", 1, 3)).toEqual(["a", "🙂b", "c"]);
  expect(quoted("abc", 2, 2)).toEqual(["", "abc", ""]);
});

test("marks that are known become numbers, others stay text", () => {
  const known = (number: number) => number <= 2;
  expect(pieces("Four weeks [1][2]. See [9].", known)).toEqual([
    { text: "Four weeks" },
    { number: 1 },
    { number: 2 },
    { text: ". See [9]." },
  ]);
  expect(pieces("So [1, 2] it is", known)).toEqual([{ text: "So" }, { number: 1 }, { number: 2 }, { text: " it is" }]);
  expect(withoutBegunMark("Four weeks [1")).toBe("Four weeks");
  expect(withoutMarks("Four weeks [1][2].")).toBe("Four weeks.");
});

test("what neighbouring passages share is shown once", () => {
  const text = "Alpha one. Beta two. Gamma three. Delta four. Epsilon 𝄞 five.";
  const part = (begin: string, end: string) => {
    const [start, stop] = [text.indexOf(begin), text.indexOf(end) + end.length];
    return { text: text.slice(start, stop), char_start: start, char_end: stop };
  };
  const around = joined({ chunk: part("Beta", "four."), before: [part("Alpha", "two.")], after: [part("Delta", "five.")] });
  expect(around).toEqual({ before: ["Alpha one."], after: ["Epsilon 𝄞 five."] });
});

test("names are cut in their middle", () => {
  expect(startAndEnd("docs/adr/0020-token-vectors.md")).toEqual(["docs/adr/0020-to", "ken-vectors.md"]);
  expect(startAndEnd("👩‍👩‍👧".repeat(28))).toEqual(Array(2).fill("👩‍👩‍👧".repeat(14)));
  expect(startAndEnd("handbook.md")).toEqual(["handbook.md", ""]);
  expect(startAndEnd("مرحبا".repeat(9))).toEqual(["مرحبا".repeat(9), ""]);
});

test("a passage is placed by its headings and its origin", () => {
  expect(placeOf({ heading_path: ["Terms", "Notice"] })).toBe("Terms › Notice");
  expect(placeOf({ origin: { author: "Ann", channel: "Harbour", date: "2026-01-15T09:30:00Z", message_id: "17" } })).toBe(
    "Harbour · Ann · 2026-01-15 09:30",
  );
  const origin = { author: "", channel: "https://example.org/a", date: "", message_id: null };
  expect(webAddressOf({ document_id: "web-1", origin })).toBe("https://example.org/a");
  expect(webAddressOf({ document_id: "d-1", origin })).toBe("");
});

test("arguments are read as a person would", () => {
  expect([argumentText("a b"), argumentText(3), argumentText({ a: [1] })]).toEqual(["a b", "3", '{"a":[1]}']);
});

test("a table is saved so that no cell becomes a formula", () => {
  expect(
    csvOf(
      ["a", 'b"'],
      [
        ["=1+1", 2],
        [null, "x,y"],
      ],
    ),
  ).toBe('a,"b"""\r\n\'=1+1,2\r\n,"x,y"');
});

test("words are found on a page whose lines nobody has measured", () => {
  const item = (str: string, x: number, y: number) => ({ str, transform: [10, 0, 0, 10, x, y], width: 100, height: 10 });
  const items = [item("The sensor is", 50, 700), item("iced up. Wait.", 50, 680), item("Other", 50, 660)];
  const upright = [1, 0, 0, -1, 0, 800];
  expect(findWords(items, "sensor is iced up", upright).map(({ x0, y0 }) => [x0, y0])).toEqual([
    [50, 92.5],
    [50, 112.5],
  ]);
  expect(findWords(items, "nowhere", upright)).toEqual([]);
});

test("a quote is outlined by the boxes of its characters; without them, by all boxes of the passage", () => {
  const box = (char_start: number, char_end: number) => ({ page: 1, x0: 0, y0: 0, x1: 1, y1: 1, char_start, char_end });
  const lines = [box(0, 10), box(10, 20), box(20, 30)];
  expect(boxesOf(lines, 12, 22)).toEqual([lines[1], lines[2]]);
  expect(boxesOf(lines, 0, 0)).toEqual(lines);
  expect(boxesOf([box(0, 0)], 3, 5)).toEqual([box(0, 0)]);
});
