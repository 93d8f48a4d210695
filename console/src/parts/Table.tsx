import { useLayoutEffect, useRef, type ComponentProps } from "react";

/**
 * A table that scrolls within its place. On a phone each row is a card, and each cell stands below the name of its column. The
 * roles are written out, since a browser forgets them where a table is not drawn as one.
 */
export function Table({ children, ...rest }: ComponentProps<"table">) {
  const table = useRef<HTMLTableElement>(null);
  useLayoutEffect(() => {
    const heads = [...(table.current?.tHead?.rows[0]?.cells ?? [])].map((cell) => cell.textContent ?? "");
    for (const row of table.current?.rows ?? []) {
      row.role = "row";
      for (const cell of row.cells) {
        cell.role = cell.tagName === "TH" ? "columnheader" : "cell";
        if (cell.tagName === "TD") cell.dataset.label = heads[cell.cellIndex];
      }
    }
  });
  return (
    <div className="table-scroll">
      {/* biome-ignore lint/a11y/noRedundantRoles: it is not drawn as a table on a phone */}
      <table ref={table} role="table" className="stacked" {...rest}>
        {children}
      </table>
    </div>
  );
}
