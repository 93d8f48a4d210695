import { useEffect, useState } from "react";
import { DRAFTS } from "../../api/key";

/** What is typed and not sent stays with its page for as long as the tab is open, also over a reload. */
export function useDraft(given = "") {
  const [key] = useState(() => DRAFTS + location.pathname);
  const [text, setText] = useState(() => given || (sessionStorage.getItem(key) ?? ""));
  useEffect(() => (text ? sessionStorage.setItem(key, text) : sessionStorage.removeItem(key)), [key, text]);
  return [text, setText] as const;
}
