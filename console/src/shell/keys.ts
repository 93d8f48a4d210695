// Keys of the keyboard: which there are, and what they do on the page that is shown.

import { useEffect, useRef } from "react";

/** Actions with a key, in the order of the list on `?`. */
export const KEYS = {
  help: "?",
  newConversation: "c",
  focusQuestion: "/",
  nextCitation: "n",
  previousCitation: "p",
  closePanel: "x",
  copyAnswer: "y",
  stop: "s",
  documents: "g d",
  decisions: "g a",
  memory: "g m",
  search: "g s",
  operating: "g o",
} as const;

export type KeyAction = keyof typeof KEYS;

const GOING_MS = 1500;
let going = 0;

/** Does `act` when the key of the action is pressed outside fields and dialogs. */
export function useKey(action: KeyAction, act: () => void, isActive = true): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (!isActive) return;
    const wanted = KEYS[action];
    const hear = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const [first, second] = wanted.split(" ");
      if (second) {
        if (event.key === first) going = Date.now();
        else if (event.key === second && Date.now() - going < GOING_MS) run(event);
      } else if (event.key === wanted && Date.now() - going >= GOING_MS) run(event);
    };
    const run = (event: KeyboardEvent) => {
      event.preventDefault();
      latest.current();
    };
    document.addEventListener("keydown", hear);
    return () => document.removeEventListener("keydown", hear);
  }, [action, isActive]);
}

function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  if (!element?.closest) return false;
  return Boolean(element.closest("input, textarea, select, [contenteditable], [role=menu], [role=alertdialog]"));
}
