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

/** The boxes of the items that a quote stands in; none where the page does not have its words. */
export function findWords(items: Item[], quote: string, pageHeight: number): Box[] {
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
    return item ? [boxOf(item, pageHeight)] : [];
  });
}

/** Letters and digits alone: lines break words and spaces differently. */
function plain(text: string): string {
  return text
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, "");
}

function boxOf({ transform, width, height }: Item, pageHeight: number): Box {
  const [x, y] = [transform[4] ?? 0, transform[5] ?? 0];
  const tall = height || Math.hypot(transform[2] ?? 0, transform[3] ?? 0);
  return { x0: x, x1: x + width, y0: pageHeight - y - tall * 0.85, y1: pageHeight - y + tall * 0.2 };
}
