// The bodies of artefacts by their kinds, as docs/agents.md has them.

export type Cell = string | number | boolean | null;

export interface TableBody {
  columns: string[];
  rows: Cell[][];
  left_out?: string[];
}

export interface ChartBody {
  form: string;
  unit: string;
  labels: string[];
  series: { name: string; values: (number | null)[] }[];
  left_out?: string[];
}

export interface TimelineBody {
  events: { when: string; what: string }[];
  mermaid: string;
  left_out?: string[];
}

export interface DiagramBody {
  form: string;
  mermaid: string;
  left_out?: string[];
}

export interface SidesBody {
  documents: string[];
  rows: { topic: string; texts: (string | null)[] }[];
  left_out?: string[];
}

export interface OutlineBody {
  lines: { level: number; text: string }[];
  left_out?: string[];
}

export interface QuizBody {
  questions: { id: string; kind: string; difficulty: string; question: string; options?: string[] }[];
}
