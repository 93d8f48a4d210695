// Markdown as elements: nothing of it becomes markup by itself, links open outside, pictures are not loaded.

import { memo, useMemo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import { pieces } from "../../text";

interface Node {
  type: string;
  value?: string;
  tagName?: string;
  properties?: Record<string, unknown>;
  children?: Node[];
}

export interface MarkdownProps {
  text: string;
  isLive: boolean;
  isKnown: (number: number) => boolean;
  mark: (number: number, key: string) => ReactNode;
}

/** A text whose unfinished ends are closed while it is still coming. */
export default function Markdown({ text, isLive, isKnown, mark }: MarkdownProps) {
  const marks = useMemo(() => () => (tree: Node) => splitMarks(tree, isKnown), [isKnown]);
  const components = useMemo(() => componentsWith(mark), [mark]);
  const whole = isLive ? remend(text) : text;
  return <Drawn text={whole} marks={marks} components={components} />;
}

const Drawn = memo(function Drawn({
  text,
  marks,
  components,
}: {
  text: string;
  marks: () => (tree: Node) => void;
  components: Components;
}) {
  return (
    <ReactMarkdown
      remarkPlugins={[remarkGfm]}
      rehypePlugins={[marks as never]}
      components={components}
      disallowedElements={["img"]}
      unwrapDisallowed
    >
      {text}
    </ReactMarkdown>
  );
});

function componentsWith(mark: MarkdownProps["mark"]): Components {
  return {
    a: ({ href, children }) => (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>
    ),
    table: ({ children }) => (
      <div className="table-scroll">
        <table>{children}</table>
      </div>
    ),
    // A header cell without words names no column for a screen reader: it is a plain cell.
    th: ({ node, ...cell }) => (node && wordsOf(node as Node).trim() ? <th {...cell} /> : <td {...cell} />),
    sup: ({ node, children }) => {
      const number = Number(node?.properties?.dataCitation);
      return number ? mark(number, `${number}-${node?.position?.start.offset ?? ""}`) : <sup>{children}</sup>;
    },
  };
}

function wordsOf({ value, children = [] }: Node): string {
  return value ?? children.map(wordsOf).join("");
}

/** Turns marks in texts into elements that `sup` above draws; code keeps its brackets. */
function splitMarks(node: Node, isKnown: (number: number) => boolean): void {
  if (!node.children || node.tagName === "code") return;
  node.children = node.children.flatMap((child): Node[] => {
    if (child.type !== "text" || !child.value) {
      splitMarks(child, isKnown);
      return [child];
    }
    return pieces(child.value, isKnown).map((piece) =>
      "text" in piece
        ? { type: "text", value: piece.text }
        : {
            type: "element",
            tagName: "sup",
            properties: { dataCitation: piece.number },
            children: [{ type: "text", value: String(piece.number) }],
          },
    );
  });
}
