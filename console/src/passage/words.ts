// Words of a quote on a page of a PDF whose lines nobody has measured: found in the page's own text.

/** A rectangle in PDF points from the top left of the page. */
export interface Box {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

interface Item {
  str: string;
  transform: number[];
  width: number;
  height: number;
}

/** The boxes of the items that a quote stands in; none where the page does not have its words. `transform` leads to the page as it is seen. */
export function findWords(items: Item[], quote: string, transform: number[]): Box[] {
  const letters: { letter: string; item: number }[] = [];
  items.forEach((item, index) => {
    for (const letter of plain(item.str)) letters.push({ letter, item: index });
  });
  const wanted = plain(quote);
  const at = wanted
    ? letters
        .map(({ letter }) => letter)
        .join("")
        .indexOf(wanted)
    : -1;
  if (at < 0) return [];
  const touched = new Set(letters.slice(at, at + wanted.length).map(({ item }) => item));
  return [...touched].flatMap((index) => {
    const item = items[index];
    return item ? [boxOf(item, transform)] : [];
  });
}

/** Letters and digits alone: lines break words and spaces differently. */
function plain(text: string): string {
  return text
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, "");
}

/** From a little below the line that the letters stand on to their tops; the corners are turned with the page. */
function boxOf({ transform, width, height }: Item, page: number[]): Box {
  const [a = 1, b = 0, c = 0, d = 1, x = 0, y = 0] = transform;
  const [along, up] = [Math.hypot(a, b) || 1, Math.hypot(c, d) || 1];
  const tall = height || up;
  const corners = [
    [0, -0.2 * tall],
    [width, 0.75 * tall],
  ].map(([forward = 0, rise = 0]) => seen(x + (a / along) * forward + (c / up) * rise, y + (b / along) * forward + (d / up) * rise, page));
  const [xs, ys] = [corners.map(([each]) => each), corners.map(([, each]) => each)];
  return { x0: Math.min(...xs), y0: Math.min(...ys), x1: Math.max(...xs), y1: Math.max(...ys) };
}

/** A point of the PDF on the page as it is seen, from its top left. */
function seen(x: number, y: number, [a = 1, b = 0, c = 0, d = 1, e = 0, f = 0]: number[]): [number, number] {
  return [a * x + c * y + e, b * x + d * y + f];
}
