import { expect, test } from "vitest";
import { sha256, solve } from "../../src/api/proof";

async function expected(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

test("our hash equals the browser's for every length of a challenge", async () => {
  for (let length = 0; length <= 55; length++) {
    const text = "0123456789abcdef.".repeat(4).slice(0, length);
    const hash = [...sha256(text)].map((word) => word.toString(16).padStart(8, "0")).join("");
    expect(hash).toBe(await expected(text));
  }
  expect(() => sha256("a".repeat(56))).toThrow(RangeError);
});

test("a solution is a number whose hash begins with the bits that are asked for", async () => {
  const seed = "0f".repeat(12);
  const number = solve(seed, 12);
  expect(await expected(`${seed}.${number}`)).toMatch(/^000/);
});
