import { beforeEach, expect, test, vi } from "vitest";

let kept: Record<string, string>;
let reloads: number;
let served: string;
let missing: () => void;
let isDialogOpen: boolean;

const script = (build: string) => `/console/assets/index-${build}.js`;

/** The page as the server gives it, in the same tab. */
async function load(build: string) {
  vi.resetModules();
  vi.stubGlobal("document", {
    scripts: [{ src: `http://localhost${script(build)}` }],
    addEventListener: () => {},
    querySelector: () => (isDialogOpen ? {} : null),
  });
  vi.stubGlobal("window", { addEventListener: (_: string, heard: () => void) => (missing = heard) });
  vi.stubGlobal("location", { reload: () => (reloads += 1) });
  vi.stubGlobal("fetch", async () => new Response(`<script src="${script(served)}"></script>`));
  vi.stubGlobal("sessionStorage", {
    getItem: (name: string) => kept[name] ?? null,
    setItem: (name: string, value: string) => (kept[name] = value),
  });
  const renewal = await import("../../src/shell/renewal");
  renewal.followBuilds();
  return renewal;
}

async function lackPart(): Promise<void> {
  missing();
  await new Promise((resolve) => setTimeout(resolve));
}

beforeEach(() => {
  kept = {};
  reloads = 0;
  isDialogOpen = false;
});

test("a page loads itself anew for a newer build, and says so", async () => {
  served = "a";
  expect((await load("a")).wasRenewed()).toBe(false);
  await lackPart();
  expect(reloads).toBe(0);
  served = "b";
  await lackPart();
  expect(reloads).toBe(1);
  expect((await load("b")).wasRenewed()).toBe(true);
});

test("two builds behind one address have a tab load itself anew once for each at most", async () => {
  await load("a");
  served = "b";
  await lackPart();
  for (const build of ["a", "b", "a", "b"]) {
    await load(build);
    served = build === "a" ? "b" : "a";
    await lackPart();
  }
  expect(reloads).toBe(1);
});

test("a page with something unsaved is left alone until it is saved", async () => {
  await load("a");
  const { holdWhile } = await import("../../src/shell/unsaved");
  served = "b";
  isDialogOpen = true;
  await lackPart();
  isDialogOpen = false;
  const release = holdWhile(() => true);
  await lackPart();
  expect(reloads).toBe(0);
  release();
  await lackPart();
  expect(reloads).toBe(1);
});
