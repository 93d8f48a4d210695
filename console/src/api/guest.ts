// Guests: people without an account, where the operator lets them in. Their cookie comes for work that the browser does.

import { Problem } from "./client";
import { makeWorker } from "./worker";

export async function loadGuestsAllowed(): Promise<boolean> {
  const offer = await fetch("/guests")
    .then((response) => response.json())
    .catch(() => ({}));
  return offer.allowed === true;
}

/** Makes this browser a guest. Throws a Problem where no more guests are let in. */
export async function becomeGuest(): Promise<void> {
  const { challenge, seed, bits } = await ask("/guests/challenge");
  const solution = await solveAside(seed, bits);
  await ask("/guests", { challenge, solution });
}

async function ask(path: string, body?: object): Promise<{ challenge: string; seed: string; bits: number }> {
  const response = await fetch(path, {
    method: "POST",
    ...(body && { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
  });
  if (!response.ok) throw await Problem.of(response);
  return response.json();
}

function solveAside(seed: string, bits: number): Promise<string> {
  const worker = makeWorker("proof");
  return new Promise<string>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<string>) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
    worker.postMessage({ seed, bits });
  }).finally(() => worker.terminate());
}
