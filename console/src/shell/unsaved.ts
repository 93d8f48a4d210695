// What would be lost if the page were loaded anew now.

const KEPT = ".composer, .side"; // a question stays as a draft, and what stands at the side is kept at once
const checks = new Set<() => boolean>();
const typed = new Set<HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement>();

/** From now on what is typed into fields of the page counts. */
export function followTyping(): void {
  const note = ({ target }: Event) => {
    if (isField(target) && !target.closest(KEPT)) typed.add(target);
  };
  document.addEventListener("input", note, true);
  document.addEventListener("change", note, true);
}

/** Has the page count as unsaved while `check` says so. Returns what ends that. */
export function holdWhile(check: () => boolean): () => void {
  checks.add(check);
  return () => checks.delete(check);
}

/** Whether something on the page is not saved: an open dialog, a filled form, or what the parts of the page say of themselves. */
export function hasUnsaved(): boolean {
  for (const field of typed) if (!field.isConnected) typed.delete(field);
  return document.querySelector(".dialog") !== null || [...typed].some(isFilled) || [...checks].some((check) => check());
}

function isFilled(field: HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement): boolean {
  if (field instanceof HTMLSelectElement) return field.closest("form") !== null;
  if (field instanceof HTMLInputElement && ["checkbox", "radio"].includes(field.type))
    return field.checked && field.closest("form") !== null;
  return field.value !== "";
}

function isField(target: EventTarget | null): target is HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
