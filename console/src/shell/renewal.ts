// A new build while a page is open. The parts that this page has not loaded yet are gone from the server then, so the page loads itself
// again, once for each build, and says so.

const STORED = "groundwork.build";
const SCRIPT = /\/console\/assets\/index-[^"\s]+\.js/;

const isRenewed = remember([...document.scripts].map((each) => each.src).join("\n"));

/** Whether this tab had an older build before it was loaded. */
export function wasRenewed(): boolean {
  return isRenewed;
}

/** From now on a part that is missing has the server asked whether there is a newer build. */
export function followBuilds(): void {
  window.addEventListener("vite:preloadError", () => void renew());
}

async function renew(): Promise<void> {
  const newest = await fetch("/", { cache: "no-store" })
    .then((response) => response.text())
    .catch(() => "");
  const build = SCRIPT.exec(newest)?.[0];
  if (build && build !== sessionStorage.getItem(STORED)) location.reload();
}

/** Keeps the build that these scripts are of for the tab; returns whether it is another than the tab had. */
function remember(scripts: string): boolean {
  const [before, now] = [sessionStorage.getItem(STORED), SCRIPT.exec(scripts)?.[0] ?? ""];
  sessionStorage.setItem(STORED, now);
  return Boolean(before && now && before !== now);
}
