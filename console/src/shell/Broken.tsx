import type { ErrorComponentProps } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { Button, Empty } from "../parts";

/** A page that could not be drawn. The rest of the console goes on. */
export function Broken({ error, reset }: ErrorComponentProps) {
  const { t } = useTranslation();
  return (
    <Empty icon="warning" title={t("shell.broken")}>
      <p className="hint" dir="auto">
        {error instanceof Error ? error.message : String(error)}
      </p>
      <Button onPress={reset}>{t("shell.again")}</Button>
    </Empty>
  );
}
