// What is copied from the page leaves without the marks that keep its parts in their own direction here.

import { withoutIsolates } from "../text";

export function cleanCopies(): void {
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    const text = selection?.toString() ?? "";
    if (!selection?.rangeCount || !event.clipboardData || withoutIsolates(text) === text) return;
    const whole = document.createElement("div");
    whole.append(selection.getRangeAt(0).cloneContents());
    event.clipboardData.setData("text/plain", withoutIsolates(text));
    event.clipboardData.setData("text/html", withoutIsolates(new XMLSerializer().serializeToString(whole)));
    event.preventDefault();
  });
}
