// What an agent has made besides its text: each kind as it is meant to be used, with the citations of its parts.

import { lazy } from "react";
import { useTranslation } from "react-i18next";
import { openPassage } from "../passage/shown";
import type { FoldedRun } from "../run/fold";
import { Later } from "../shell/Later";
import type { ChartBody, DiagramBody, OutlineBody, QuizBody, SidesBody, TableBody, TimelineBody } from "./bodies";
import { QuizForm } from "./QuizForm";
import { SortedTable } from "./SortedTable";

const Chart = lazy(() => import("./Chart"));
const Diagram = lazy(() => import("./Diagram"));

type Artefact = FoldedRun["artefacts"][number];

/** Draws the artefacts of a run in order. A quiz is graded once the run has ended and its thread keeps it. */
export function Artefacts({ run, isOver }: { run: FoldedRun; isOver: boolean }) {
  if (!run.artefacts.length) return null;
  return (
    <div className="artefacts" data-testid="artefacts">
      {run.artefacts.map((artefact, index) => (
        <ArtefactView key={artefact.artefact_id ?? index} artefact={artefact} run={run} isOver={isOver} />
      ))}
    </div>
  );
}

function ArtefactView({ artefact, run, isOver }: { artefact: Artefact; run: FoldedRun; isOver: boolean }) {
  const { t } = useTranslation();
  const leftOut = (artefact.body as { left_out?: string[] } | null)?.left_out ?? [];
  return (
    <section className="artefact card" data-testid="artefact" data-kind={artefact.kind} aria-label={artefact.title || artefact.kind}>
      <h2 dir="auto">{artefact.title || artefact.kind}</h2>
      <Later fallback={<Outline text={artefact.outline} />} instead={<Outline text={artefact.outline} />}>
        <Body artefact={artefact} run={run} isOver={isOver} />
      </Later>
      {leftOut.length > 0 && (
        <details className="hint">
          <summary>{t("artefact.leftOut", { count: leftOut.length })}</summary>
          <ul>
            {leftOut.map((each) => (
              <li key={each} dir="auto">
                {each}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function Body({ artefact, run, isOver }: { artefact: Artefact; run: FoldedRun; isOver: boolean }) {
  const { t } = useTranslation();
  const body = artefact.body as unknown;
  if (!body) return <Outline text={artefact.outline} />;
  const cited = new Map((artefact.items ?? []).map(({ path, citations }) => [path, citations]));
  const open = (number: number) =>
    openPassage({ number, run: { citations: artefact.citations, verification: null }, runId: run.run_id, evidence: [], dropped: [] });
  const table = (columns: string[], rows: TableBody["rows"], pathOf: (row: number, column: number) => string) => (
    <SortedTable
      name={artefact.title || artefact.kind}
      columns={columns}
      rows={rows}
      citedAt={(row, column) => cited.get(pathOf(row, column)) ?? []}
      onOpen={open}
    />
  );
  switch (artefact.kind) {
    case "table": {
      const { columns, rows } = body as TableBody;
      return table(columns, rows, (row, column) => `/rows/${row}/${column}`);
    }
    case "chart": {
      const chart = body as ChartBody;
      const heads = chart.series.map(({ name }) => [name, chart.unit].filter(Boolean).join(", ") || t("artefact.value"));
      const rows = chart.labels.map((label, at) => [label, ...chart.series.map(({ values }) => values[at] ?? null)]);
      return (
        <>
          <Chart chart={chart} />
          <details>
            <summary>{t("artefact.asTable")}</summary>
            {table([t("artefact.label"), ...heads], rows, (row, column) => `/series/${column - 1}/values/${row}`)}
          </details>
        </>
      );
    }
    case "timeline": {
      const { events } = body as TimelineBody;
      return <Timeline events={events} citedAt={(at) => cited.get(`/events/${at}`) ?? []} onOpen={open} />;
    }
    case "diagram":
      return <Diagram source={(body as DiagramBody).mermaid} outline={artefact.outline} title={artefact.title} />;
    case "side_by_side": {
      const { documents, rows } = body as SidesBody;
      return table(
        [t("artefact.topic"), ...documents],
        rows.map(({ topic, texts }) => [topic, ...texts]),
        (row, column) => `/rows/${row}/texts/${column - 1}`,
      );
    }
    case "outline":
      return (
        <ul className="outline-lines">
          {(body as OutlineBody).lines.map(({ level, text }, at) => (
            <li key={`${at}-${text}`} data-level={level} dir="auto">
              {text} <Marks numbers={cited.get(`/lines/${at}`) ?? []} onOpen={open} />
            </li>
          ))}
        </ul>
      );
    case "quiz":
      return <QuizForm questions={(body as QuizBody).questions} threadId={isOver ? run.thread_id : null} runId={run.run_id} />;
    default:
      return <Outline text={artefact.outline} />;
  }
}

function Outline({ text }: { text: string }) {
  return (
    <pre className="outline" dir="auto">
      {text}
    </pre>
  );
}

/** Small numbers that open the words which prove a part. */
export function Marks({ numbers, onOpen }: { numbers: number[]; onOpen: (number: number) => void }) {
  const { t } = useTranslation();
  return numbers.map((number) => (
    <sup className="mark" key={number}>
      <button type="button" className="mark-number" onClick={() => onOpen(number)} aria-label={t("sources.passage", { number })}>
        {number}
      </button>
    </sup>
  ));
}

function Timeline({
  events,
  citedAt,
  onOpen,
}: {
  events: TimelineBody["events"];
  citedAt: (at: number) => number[];
  onOpen: (number: number) => void;
}) {
  return (
    <ol className="timeline">
      {events.map(({ when, what }, at) => (
        <li key={`${when}-${what}`}>
          <time dir="auto">{when}</time>
          <span dir="auto">
            {what} <Marks numbers={citedAt(at)} onOpen={onOpen} />
          </span>
        </li>
      ))}
    </ol>
  );
}
