import { CatchBoundary } from "@tanstack/react-router";
import { Suspense, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Broken } from "./Broken";

/** A part that is loaded when it is shown. One that cannot be loaded says so in its place, or `instead` stands there; the page goes on. */
export function Later({ children, fallback, instead }: { children: ReactNode; fallback?: ReactNode; instead?: ReactNode }) {
  const { t } = useTranslation();
  return (
    <CatchBoundary getResetKey={() => "part"} errorComponent={instead === undefined ? Broken : () => instead}>
      <Suspense fallback={fallback ?? <p className="loading">{t("common.loading")}</p>}>{children}</Suspense>
    </CatchBoundary>
  );
}
