// The API key, where the server asks for one: asked for once, kept until the tab is closed, shown with every request.

import { useSyncExternalStore } from "react";

const STORED = "groundwork.api-key";
const IDENTITY = "groundwork.identity";

/** A question for a key that is open: what the server said of the last one, and what takes the answer. */
export interface KeyQuestion {
  refusal: string;
  answer: (key: string) => void;
}

let question: KeyQuestion | null = null;
let asking: Promise<boolean> | null = null;
const listeners = new Set<() => void>();

/** Who the caller was when the server last said it: tenant and subject. Empty while that is not known. */
export function identity(): string {
  return sessionStorage.getItem(IDENTITY) ?? "";
}

export function useIdentity(): string {
  return useSyncExternalStore(subscribe, identity);
}

/** Notes who the caller is. Where that was somebody else the page begins anew: all that it shows is theirs. True then. */
export function noteIdentity({ tenant, subject }: { tenant: string; subject: string }): boolean {
  const before = identity();
  const now = `${tenant}/${subject}`;
  if (now === before) return false;
  sessionStorage.setItem(IDENTITY, now);
  if (before) location.assign("/");
  tell();
  return before !== "";
}

/** The header that shows the key; none where there is no key. */
export function keyHeaders(): Record<string, string> {
  const key = sessionStorage.getItem(STORED);
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** Whether there is another key than a refused request showed: entered meanwhile, or asked for now. */
export function askForKey(shown: Record<string, string>, refusal: string): Promise<boolean> | boolean {
  if (keyHeaders().Authorization !== shown.Authorization) return true;
  asking ||= ask(shown.Authorization ? refusal : "").finally(() => {
    asking = null;
  });
  return asking;
}

/** Whether text can be a key at all. */
export function canBeKey(text: string): boolean {
  return text !== "" && !/[^!-~]/.test(text);
}

/** Where people can log in by their browser: a cookie then shows who they are, without a key. */
export interface Issuer {
  issuer: string;
  name: string;
}

export async function loadIssuers(): Promise<Issuer[]> {
  const { issuers } = await fetch("/oidc/issuers")
    .then((response) => response.json())
    .catch(() => ({ issuers: [] }));
  return issuers;
}

/** Where a login at an issuer begins, which comes back to the page that is shown. */
export function loginAddress({ issuer }: Issuer): string {
  const to = location.pathname + location.search + location.hash;
  return `/oidc/login?issuer=${encodeURIComponent(issuer)}&to=${encodeURIComponent(to)}`;
}

/** Forgets the key, or ends the login, with all that belongs to its caller. */
export async function signOut(): Promise<void> {
  const hadKey = sessionStorage.getItem(STORED) !== null;
  const wasGuest = !hadKey && isGuest(identity().split("/")[1] ?? "");
  sessionStorage.clear();
  if (wasGuest) await fetch("/guests", { method: "DELETE" }).catch(() => null);
  const ended =
    hadKey || wasGuest
      ? {}
      : await fetch("/oidc/logout", { method: "POST" })
          .then((response) => response.json())
          .catch(() => ({}));
  location.assign(ended.then || "/");
}

const GUEST = /^guest-[0-9a-f]{24}$/;

/** Whether this is the name of a guest, whose cookie is no login. */
export function isGuest(subject: string): boolean {
  return GUEST.test(subject);
}

export function pendingQuestion(): KeyQuestion | null {
  return question;
}

export function useKeyQuestion(): KeyQuestion | null {
  return useSyncExternalStore(subscribe, pendingQuestion);
}

export function useHasKey(): boolean {
  return useSyncExternalStore(subscribe, () => sessionStorage.getItem(STORED) !== null);
}

function ask(refusal: string): Promise<boolean> {
  const before = sessionStorage.getItem(STORED);
  sessionStorage.removeItem(STORED);
  return new Promise((resolve) => {
    show({
      refusal,
      answer: async (key) => {
        sessionStorage.setItem(STORED, key);
        show(null);
        if (key === before || !(await isSomebodyElses())) resolve(true);
      },
    });
  });
}

/** Whether the key that was entered is another person's than the page was made for, which then begins anew. */
async function isSomebodyElses(): Promise<boolean> {
  if (!identity()) return false;
  const caller = await fetch("/v1/me", { headers: keyHeaders() })
    .then((response) => (response.ok ? response.json() : null))
    .catch(() => null);
  return caller?.subject ? noteIdentity(caller) : false;
}

function show(next: KeyQuestion | null): void {
  question = next;
  tell();
}

function tell(): void {
  for (const heard of listeners) heard();
}

function subscribe(heard: () => void): () => void {
  listeners.add(heard);
  return () => listeners.delete(heard);
}
