// Where the browser of an administrator ends who logs in at an MCP server: the login is finished in the name of who has begun it.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { api } from "../../api/client";
import { Status } from "../../parts";

export function ToolServerLogin() {
  const { t } = useTranslation();
  const [given] = useState(() => new URLSearchParams(location.search));
  const state = given.get("state") ?? "";
  const server = state.split(".")[0] ?? "";
  useEffect(() => history.replaceState(history.state, "", location.pathname), []); // the code stays in no history
  const { error, isSuccess } = useQuery({
    queryKey: ["tool-server-login", state],
    queryFn: async () => {
      const body = { state, code: given.get("code") ?? "", iss: given.get("iss") };
      await api.POST("/v1/tool-servers/{server}/login/answer", { params: { path: { server } }, body });
      return true;
    },
    enabled: server !== "",
    retry: false, // a code is good once
    staleTime: Number.POSITIVE_INFINITY,
  });
  const done = isSuccess ? t("login.done", { server, command: "groundwork tool-servers list" }) : t("login.moment");
  const words = server ? (error?.message ?? done) : t("login.nothing", { command: "groundwork tool-servers login NAME" });
  return (
    <div className="column">
      <header className="page-head">
        <h1>{t("login.title")}</h1>
        <p className="lead">{t("login.lead")}</p>
      </header>
      <Status>
        <span data-testid="login-said" dir="auto">
          {words}
        </span>
      </Status>
    </div>
  );
}
