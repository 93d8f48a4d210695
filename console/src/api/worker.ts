// Workers of the console. The policy of the page allows one maker of addresses of scripts, and that once: it knows them all.

import pdfAddress from "pdfjs-dist/build/pdf.worker.min.mjs?url";
import proofAddress from "./proof.worker?worker&url";

interface Policy {
  createScriptURL: (address: string) => string;
}

interface TrustedTypes {
  createPolicy: (name: string, rules: Policy) => Policy;
}

const ADDRESSES = { pdf: pdfAddress, proof: proofAddress };
let policy: Policy | null = null;

export function makeWorker(name: keyof typeof ADDRESSES): Worker {
  const trusted = (window as unknown as { trustedTypes?: TrustedTypes }).trustedTypes;
  policy ??= trusted?.createPolicy("groundwork", { createScriptURL: known }) ?? { createScriptURL: known };
  return new Worker(policy.createScriptURL(ADDRESSES[name]), { type: "module" });
}

function known(address: string): string {
  if (!Object.values(ADDRESSES).includes(address)) throw new TypeError("not a worker of the console");
  return address;
}
