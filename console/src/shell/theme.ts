// Light and dark: what the system says until a person chooses.

import { useSyncExternalStore } from "react";

const STORED = "groundwork.theme";
const DARK = "(prefers-color-scheme: dark)";
/** Only to be listened to: reading `matches` after a change keeps the browser from sending the event. */
const system = matchMedia(DARK);
const listeners = new Set<() => void>();

export type Theme = "light" | "dark";

export function theme(): Theme {
  const chosen = localStorage.getItem(STORED);
  return (chosen ?? (matchMedia(DARK).matches ? "dark" : "light")) === "dark" ? "dark" : "light";
}

export function startTheme(): void {
  system.addEventListener("change", apply);
  apply();
}

export function chooseTheme(next: Theme): void {
  localStorage.setItem(STORED, next);
  apply();
}

export function useTheme(): Theme {
  return useSyncExternalStore((heard) => {
    listeners.add(heard);
    return () => listeners.delete(heard);
  }, theme);
}

function apply(): void {
  document.documentElement.dataset.theme = theme();
  for (const heard of listeners) heard();
}
