// Tools, agents and steps in words. The command line has the same in English (cli/display/tool_names.py).

import i18next from "i18next";
import { useTranslation } from "react-i18next";

type Group = "tools" | "agentWords" | "chosenBy" | "steps" | "around";

/** What calls a tool as a person does: in its words, or its name without signs. `git__git_log` of the server `git` is "git log". */
export function useToolName(): (name: string) => string {
  useTranslation();
  return inWords;
}

/** Which agent answers and who chose it; empty for the one that answers where nobody chose. */
export function agentInWords(name: string, chosenBy: string): string {
  const by = known("chosenBy", chosenBy);
  return by ? i18next.t("trace.agent", { name: known("agentWords", name) || inWords(name), by }) : "";
}

/** `Round 1: words of the model` of "round1/model": a step that has no line of its own. */
export function stepInWords(step: string): string {
  const parts = step.split("/");
  const words = parts.map((part, place) => {
    const isLast = place === parts.length - 1;
    const name = part.replace(/\d+$/, "");
    const said = known(isLast ? "steps" : "around", name) || inWords(name);
    return isLast ? said : `${said} ${part.slice(name.length)}`.trim();
  });
  const line = words.join(": ");
  return line.charAt(0).toLocaleUpperCase(i18next.language) + line.slice(1);
}

function inWords(name: string): string {
  const [server, ...rest] = name.split("__");
  const tool = rest.join("__");
  const said = ["_", "-"].some((sign) => tool.startsWith(server + sign)) ? tool : name;
  return known("tools", name) || said.replaceAll(/[_-]+/g, " ").trim();
}

function known(group: Group, name: string): string {
  const key = `${group}.${name}`;
  return i18next.exists(key) ? i18next.t(key as "tools.search") : "";
}
