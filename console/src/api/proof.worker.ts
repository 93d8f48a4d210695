// Solves a challenge beside the page, which goes on meanwhile.

import { solve } from "./proof";

addEventListener("message", ({ data }: MessageEvent<{ seed: string; bits: number }>) => postMessage(solve(data.seed, data.bits)));
