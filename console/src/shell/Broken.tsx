import type { ErrorComponentProps } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { Button, Empty } from "../parts";

const NOT_LOADED = /dynamically imported module|Importing a module script failed|Unable to preload/i; // Chromium, Firefox, Safari, Vite

/** A page that could not be drawn. The rest of the console goes on. A part that was not loaded is had only by loading the page again. */
export function Broken({ error, reset }: ErrorComponentProps) {
  const { t } = useTranslation();
  const why = error instanceof Error ? error.message : String(error);
  const isLacking = NOT_LOADED.test(why);
  return (
    <Empty icon="warning" title={t("shell.broken")}>
      <p className="hint" dir="auto">
        {isLacking ? t("shell.lacking") : why}
      </p>
      <Button onPress={isLacking ? () => location.reload() : reset}>{t("shell.again")}</Button>
    </Empty>
  );
}
