// Services that tools use in the caller's name: connected by a token, which the server tries and seals, and forgotten again.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Button, Confirm, Empty, Failure } from "../../parts";
import { Table } from "../../parts/Table";
import { useMay } from "../../shell/caller";
import "../../style/pages.css";
import { NewConnection } from "./NewConnection";
import { nameOf } from "./names";

type Connection = Schemas["ToolConnection"];

export function Connections() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [isMaking, setMaking] = useState(false);
  const { data, error } = useQuery({ queryKey: ["connections"], queryFn: () => dataOf(api.GET("/v1/connections")), retry: false });
  const again = () => queries.invalidateQueries({ queryKey: ["connections"] });
  return (
    <div className="column wide stack">
      <header className="page-head">
        <h1>{t("connections.title")}</h1>
        <p className="lead">{t("connections.lead")}</p>
      </header>
      <Failure>{error?.message}</Failure>
      {data && data.services.length > 0 && (
        <div className="actions start">
          <Button icon="add" look="primary" onPress={() => setMaking(true)} data-testid="new-connection">
            {t("connections.new")}
          </Button>
        </div>
      )}
      {data && !data.connections.length && (
        <Empty icon="tool" title={t("connections.none")}>
          <p>{t(data.services.length ? "connections.noneHint" : "connections.closed")}</p>
        </Empty>
      )}
      {data && data.connections.length > 0 && <ConnectionTable connections={data.connections} onChange={again} />}
      {data && isMaking && <NewConnection services={data.services} logins={data.logins} onClose={() => setMaking(false)} onMade={again} />}
    </div>
  );
}

function ConnectionTable({ connections, onChange }: { connections: Connection[]; onChange: () => void }) {
  const { t } = useTranslation();
  const format = useFormat();
  const may = useMay();
  const [forgotten, forget] = useState<Connection | null>(null);
  const remove = async (each: Connection) => {
    await api.DELETE("/v1/connections/{service}", { params: { path: { service: each.service }, query: { shared: each.shared } } });
    onChange();
  };
  return (
    <>
      <Table data-testid="connections">
        <thead>
          <tr>
            <th scope="col">{t("connections.service")}</th>
            <th scope="col">{t("connections.account")}</th>
            <th scope="col">{t("connections.whose")}</th>
            <th scope="col">{t("connections.since")}</th>
            <th scope="col">
              <span className="visually-hidden">{t("answer.more")}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {connections.map((each) => (
            <tr key={`${each.service} ${each.shared}`}>
              <td>{nameOf(each.service)}</td>
              <td dir="auto">
                {each.account}
                <Failure>{each.error}</Failure>
              </td>
              <td>{t(each.shared ? "connections.tenants" : "connections.own")}</td>
              <td>{format.moment(each.connected_at)}</td>
              <td>
                {(!each.shared || may.administer) && (
                  <Button icon="trash" onPress={() => forget(each)}>
                    {t("connections.remove")}
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
      {forgotten && (
        <Confirm
          title={t("connections.removeTitle", { name: nameOf(forgotten.service) })}
          action={t("connections.remove")}
          isOpen
          onClose={() => forget(null)}
          onConfirm={() => remove(forgotten)}
        >
          <p>{t("connections.removeHint")}</p>
        </Confirm>
      )}
    </>
  );
}
