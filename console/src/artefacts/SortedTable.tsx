// A table whose columns sort, and that can be saved as CSV.

import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { save } from "../api/client";
import { Button } from "../parts";
import { Marks } from "./Artefacts";
import type { Cell } from "./bodies";
import { csvOf } from "./csv";

export function SortedTable({
  name,
  columns,
  rows,
  citedAt,
  onOpen,
}: {
  name: string;
  columns: string[];
  rows: Cell[][];
  citedAt: (row: number, column: number) => number[];
  onOpen: (number: number) => void;
}) {
  const { t, i18n } = useTranslation();
  const [sorted, sort] = useState<{ column: number; by: 1 | -1 } | null>(null);
  const order = useMemo(() => {
    const indices = rows.map((_, index) => index);
    if (!sorted) return indices;
    const collator = new Intl.Collator(i18n.language, { numeric: true });
    const compare = (one: Cell | undefined, other: Cell | undefined) =>
      typeof one === "number" && typeof other === "number" ? one - other : collator.compare(String(one ?? ""), String(other ?? ""));
    return indices.sort((one, other) => sorted.by * compare(rows[one]?.[sorted.column], rows[other]?.[sorted.column]));
  }, [rows, sorted, i18n.language]);
  const press = (column: number) =>
    sort((before) => (before?.column === column ? (before.by === 1 ? { column, by: -1 } : null) : { column, by: 1 }));
  return (
    <>
      <div className="table-scroll">
        <table>
          <thead>
            <tr>
              {columns.map((column, index) => (
                <th
                  key={`${index}-${column}`}
                  scope="col"
                  aria-sort={sorted?.column === index ? (sorted.by === 1 ? "ascending" : "descending") : "none"}
                >
                  <button type="button" className="sort" onClick={() => press(index)} dir="auto">
                    {column.trim() || t("artefact.column", { number: index + 1 })}
                    <span aria-hidden="true">{sorted?.column === index ? (sorted.by === 1 ? " ↑" : " ↓") : ""}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {order.map((row) => (
              <tr key={row}>
                {columns.map((column, at) => (
                  <td key={`${at}-${column}`} dir="auto">
                    {String(rows[row]?.[at] ?? "–")} <Marks numbers={citedAt(row, at)} onOpen={onOpen} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Button look="link" icon="download" onPress={() => save(new Blob([csvOf(columns, rows)], { type: "text/csv" }), `${name}.csv`)}>
        {t("artefact.csv")}
      </Button>
    </>
  );
}
