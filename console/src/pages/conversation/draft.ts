import { useEffect, useState } from "react";
import { identity, useIdentity } from "../../api/key";

/** What is typed and not sent stays with its page and its writer for as long as the tab is open, also over a reload. */
export function useDraft(given = "") {
  const writer = useIdentity();
  const [path] = useState(location.pathname);
  const [text, setText] = useState(() => given || (sessionStorage.getItem(nameOf(identity(), path)) ?? ""));
  useEffect(() => {
    if (!writer) return;
    const name = nameOf(writer, path);
    if (text) sessionStorage.setItem(name, text);
    else sessionStorage.removeItem(name);
  }, [writer, path, text]);
  return [text, setText] as const;
}

function nameOf(writer: string, path: string): string {
  return `groundwork.draft.${writer} ${path}`;
}
