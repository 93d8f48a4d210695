// Requests to the gateway: with the caller's key where there is one, and problems as errors.

import i18next from "i18next";
import createClient from "openapi-fetch";
import { askForKey, keyHeaders } from "./key";
import type { paths } from "./schema";
import { refusalWords } from "./words";

/** Statuses by which a proxy in front says that the server is away for a moment. */
const AWAY = [502, 503, 504];

/** What the server refused, as it explains it (application/problem+json). */
export class Problem extends Error {
  readonly reason: string;
  readonly retryable: boolean;
  readonly traceId: string;

  constructor(
    body: { detail?: string; reason?: string; retryable?: boolean; trace_id?: string },
    readonly status: number,
    retryAfterS = 0,
  ) {
    super(refusalWords({ ...body, status, retryAfterS }));
    this.reason = body.reason ?? "";
    this.retryable = body.retryable ?? AWAY.includes(status);
    this.traceId = body.trace_id ?? "";
  }

  get isAboutKey(): boolean {
    return this.status === 401 || this.reason === "TOO_MANY_WRONG_API_KEYS";
  }

  static async of(response: Response): Promise<Problem> {
    return new Problem(await response.json().catch(() => ({})), response.status, Number(response.headers.get("Retry-After")) || 0);
  }
}

/** Nobody answers at the server's address. */
export class Away extends Error {
  constructor() {
    super(i18next.t("problem.away"));
  }
}

const losses = new Set<() => void>();

/** Has `heard` called whenever the server is lost in the middle of something. Returns what ends that. */
export function whenLost(heard: () => void): () => void {
  losses.add(heard);
  return () => losses.delete(heard);
}

export function lost(): void {
  for (const heard of losses) heard();
}

/** fetch that throws a Problem unless the answer is a success. A request whose key is refused is repeated with another key. */
export async function call(request: string | Request, options: RequestInit = {}): Promise<Response> {
  for (;;) {
    const shown = keyHeaders();
    const headers = new Headers(options.headers ?? (request instanceof Request ? request.headers : undefined));
    for (const [name, value] of Object.entries(shown)) headers.set(name, value);
    const response = await reached(request instanceof Request ? request.clone() : request, { ...options, headers });
    if (response.ok) return response;
    const problem = await Problem.of(response);
    if (!problem.isAboutKey || !(await askForKey(shown, problem.message))) throw problem;
  }
}

async function reached(request: string | Request, options: RequestInit): Promise<Response> {
  try {
    return await fetch(request, options);
  } catch (error) {
    const signal = options.signal ?? (request instanceof Request ? request.signal : undefined);
    if (signal?.aborted) throw error;
    lost();
    throw new Away();
  }
}

/** The typed client of docs/openapi.json. A refusal is thrown, so that `data` of an answer is there. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: (request) => call(request) });

/** The body of an answer of `api`. */
export async function dataOf<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}

/** A body of a request that leaves out what has a default; the generated types have such members as always there. */
export function bodyOf<T>(members: NoInfer<Partial<T>>): T {
  return members as T;
}

/** Saves a file of the server, under the name that the server gives it (RFC 6266) where there is no other. A plain link would show no key. */
export async function download(path: string, name = ""): Promise<void> {
  const response = await call(path);
  save(await response.blob(), name || fileName(response));
}

/** Saves a file that the page has made. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function fileName(response: Response): string {
  const disposition = response.headers.get("Content-Disposition") ?? "";
  const encoded = /filename\*=utf-8''([^;]+)/i.exec(disposition)?.[1];
  return encoded ? decodeURIComponent(encoded) : (/filename="([^"]+)"/i.exec(disposition)?.[1] ?? "document");
}
