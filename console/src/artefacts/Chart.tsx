// A chart of numbers. The same numbers stand beside it as a table, for who cannot see it.

import {
  ArcElement,
  BarController,
  BarElement,
  CategoryScale,
  Chart as ChartJs,
  DoughnutController,
  Filler,
  Legend,
  LineController,
  LineElement,
  LinearScale,
  PieController,
  PointElement,
  RadarController,
  RadialLinearScale,
  ScatterController,
  Tooltip,
} from "chart.js";
import { useEffect, useRef } from "react";
import { useTheme } from "../shell/theme";
import type { ChartBody } from "./bodies";

ChartJs.register(
  ArcElement,
  BarController,
  BarElement,
  CategoryScale,
  DoughnutController,
  Filler,
  Legend,
  LineController,
  LineElement,
  LinearScale,
  PieController,
  PointElement,
  RadarController,
  RadialLinearScale,
  ScatterController,
  Tooltip,
);

type Type = "bar" | "line" | "pie" | "radar";
const TYPES: Record<string, Type> = { line: "line", area: "line", pie: "pie", donut: "pie", doughnut: "pie", radar: "radar" };
const COLOURS = 8;

export default function Chart({ chart }: { chart: ChartBody }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => {
    if (!canvas.current) return;
    const styles = getComputedStyle(document.documentElement);
    const colours = Array.from({ length: COLOURS }, (_, index) => styles.getPropertyValue(`--chart-${index + 1}`).trim());
    const [ink, line] = [styles.getPropertyValue("--soft").trim(), styles.getPropertyValue("--line").trim()];
    const type = TYPES[chart.form] ?? "bar";
    const isRound = type === "pie";
    const scale = { ticks: { color: ink }, grid: { color: line } };
    const drawn = new ChartJs(canvas.current, {
      type,
      data: {
        labels: chart.labels,
        datasets: chart.series.map(({ name, values }, index) => ({
          label: [name, chart.unit].filter(Boolean).join(", "),
          data: values,
          backgroundColor: isRound
            ? chart.labels.map((_, at) => colours[at % COLOURS])
            : `${colours[index % COLOURS]}${type === "bar" ? "" : "40"}`,
          borderColor: isRound ? line : colours[index % COLOURS],
          borderWidth: type === "bar" ? 0 : 2,
          fill: chart.form === "area",
        })),
      },
      options: {
        animation: matchMedia("(prefers-reduced-motion: reduce)").matches ? false : { duration: 300 },
        maintainAspectRatio: false,
        color: ink,
        plugins: { legend: { display: isRound || chart.series.length > 1, labels: { color: ink } } },
        scales: isRound
          ? {}
          : type === "radar"
            ? { r: { ...scale, pointLabels: { color: ink }, ticks: { color: ink, backdropColor: "transparent" } } }
            : {
                x: scale,
                y: { ...scale, beginAtZero: type === "bar", title: { display: Boolean(chart.unit), text: chart.unit, color: ink } },
              },
      },
    });
    return () => drawn.destroy();
  }, [chart, theme]);
  return (
    <div className="chart">
      <canvas ref={canvas} role="img" aria-label={[chart.form, ...chart.series.map(({ name }) => name)].filter(Boolean).join(", ")} />
    </div>
  );
}
