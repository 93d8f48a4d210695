// A new build while a page is open. The parts that this page has not loaded yet are gone from the server then, so the page loads itself
// again, once for each build, and says so. Where something unsaved would be lost, or two builds take turns, it says that instead.

import { useSyncExternalStore } from "react";
import { followTyping, hasUnsaved } from "./unsaved";

const STORED = "groundwork.build";
const SEEN = "groundwork.builds";
const SCRIPT = /\/console\/assets\/index-[^"\s]+\.js/;
const SEEN_MAX = 20;

const own = buildIn([...document.scripts].map((each) => each.src).join("\n"));
const isRenewed = remember();
const listeners = new Set<() => void>();
let isOutdated = false;

/** Whether this tab had an older build before it was loaded. */
export function wasRenewed(): boolean {
  return isRenewed;
}

/** Whether the server has another build, and this page was not loaded anew by itself. */
export function useOutdated(): boolean {
  return useSyncExternalStore(
    (heard) => {
      listeners.add(heard);
      return () => listeners.delete(heard);
    },
    () => isOutdated,
  );
}

/** From now on a part that is missing has the server asked whether there is a newer build. */
export function followBuilds(): void {
  followTyping();
  window.addEventListener("vite:preloadError", () => void renew());
}

async function renew(): Promise<void> {
  const newest = await fetch("/", { cache: "no-store" })
    .then((response) => response.text())
    .catch(() => "");
  const build = buildIn(newest);
  if (!build || build === own) return;
  if (seen().includes(build) || hasUnsaved()) {
    isOutdated = true;
    for (const heard of listeners) heard();
    return;
  }
  note(build); // before it is there: behind the same address another build may answer
  location.reload();
}

function buildIn(text: string): string {
  return SCRIPT.exec(text)?.[0] ?? "";
}

/** Keeps the build of this page for the tab; returns whether it is another than the tab had. */
function remember(): boolean {
  const before = sessionStorage.getItem(STORED);
  sessionStorage.setItem(STORED, own);
  if (own) note(own);
  return Boolean(before && own && before !== own);
}

/** The builds that this tab has had or was loaded anew for, the latest at the end. */
function seen(): string[] {
  return (sessionStorage.getItem(SEEN) ?? "").split("\n").filter(Boolean);
}

function note(build: string): void {
  const builds = [...seen().filter((each) => each !== build), build];
  sessionStorage.setItem(SEEN, builds.slice(-SEEN_MAX).join("\n"));
}
