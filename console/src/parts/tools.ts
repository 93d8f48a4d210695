import i18next from "i18next";
import { useTranslation } from "react-i18next";
import type en from "../i18n/en.json";

export type KnownTool = keyof (typeof en)["tools"];

/** What calls a tool as a person does: in its words, or its name without signs. */
export function useToolName(): (name: string) => string {
  const { t } = useTranslation();
  return (name) => (i18next.exists(`tools.${name}`) ? t(`tools.${name as KnownTool}`) : name.replaceAll(/[_-]+/g, " ").trim());
}
