// The pictures of the console: strokes on a grid of 24, drawn in the colour of the text beside them.

const PATHS = {
  add: "M12 5v14M5 12h14",
  archive: "M4 7h16v13H4zM3 3h18v4H3zM10 12h4",
  artefact: "M4 20V10M10 20V4M16 20v-7M3 20h18",
  back: "M15 5l-7 7 7 7",
  book: "M5 4h11a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3zM5 17a3 3 0 0 1 3-3h11",
  chat: "M4 5h16v11H9l-5 4z",
  check: "M5 13l4 4L19 7",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  document: "M6 3h8l4 4v14H6zM14 3v4h4",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  edit: "M4 20l1-5L16 4l4 4L9 19zM14 6l4 4",
  expand: "M9 4H4v5M15 4h5v5M9 20H4v-5M15 20h5v-5",
  eye: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  folder: "M3 6h7l2 2h9v11H3z",
  gauge: "M4 18a9 9 0 1 1 16 0M12 14l4-5",
  help: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 17.5v.5M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  key: "M11 15.5a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM10 12.7 20 3M15.5 7.3l3.2 3.2",
  language: "M3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  memory: "M12 4a4 4 0 0 0-4 2 4 4 0 0 0-3 6 4 4 0 0 0 3 6 4 4 0 0 0 4 2zM12 4a4 4 0 0 1 4 2 4 4 0 0 1 3 6 4 4 0 0 1-3 6 4 4 0 0 1-4 2z",
  menu: "M4 6h16M4 12h16M4 18h16",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  microphone: "M12 3a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3zM6 11a6 6 0 0 0 12 0M12 17v4",
  moon: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z",
  next: "M9 5l7 7-7 7",
  plan: "M5 6h.01M5 12h.01M5 18h.01M9 6h11M9 12h11M9 18h11",
  reduce: "M5 12h14",
  retry: "M4 12a8 8 0 0 1 14-5l2 2M20 4v5h-5M20 12a8 8 0 0 1-14 5l-2-2M4 20v-5h5",
  scale: "M12 4v16M7 20h10M5 7h14M5 7l-3 7h6zM19 7l-3 7h6z",
  search: "M10 4a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15 15l5 5",
  send: "M12 20V5M6 11l6-6 6 6",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
  share: "M8 12a3 3 0 1 0-6 0 3 3 0 0 0 6 0zM22 5a3 3 0 1 0-6 0 3 3 0 0 0 6 0zM22 19a3 3 0 1 0-6 0 3 3 0 0 0 6 0zM8 11l8-5M8 13l8 5",
  stop: "M7 7h10v10H7z",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
  tool: "M14 7a4 4 0 0 1 5-4l-3 3 2 2 3-3a4 4 0 0 1-5 5l-8 8-3-3z",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v6M14 11v6",
  upload: "M12 20V9M7 13l5-5 5 5M5 4h14",
  wait: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3 3",
  warning: "M12 4l9 16H3zM12 10v4M12 17v.01",
} as const;

export type IconName = keyof typeof PATHS;

/** A picture that says nothing that words beside it do not. */
export function Icon({ name, className = "" }: { name: IconName; className?: string }) {
  return (
    <svg
      className={`icon icon-${name} ${className} ${name === "back" || name === "next" ? "directed" : ""}`}
      viewBox="0 0 24 24"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
