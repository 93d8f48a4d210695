import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { Empty } from "../parts";

export function NotFound() {
  const { t } = useTranslation();
  return (
    <Empty icon="search" title={t("shell.notFound")}>
      <Link to="/">{t("shell.toStart")}</Link>
    </Empty>
  );
}
