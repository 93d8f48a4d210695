import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Button, Empty, Failure, Field } from "../../parts";
import { useMay } from "../../shell/caller";

type Operation = Schemas["OperationModels"];
type Provider = Schemas["ModelProvider"];

/** Which models each operation asks, whether their providers answer, and another first model while everything runs. */
export function Models() {
  const { t } = useTranslation();
  const { data, error } = useQuery({ queryKey: ["models"], queryFn: () => dataOf(api.GET("/v1/models")), refetchInterval: 10_000 });
  const may = useMay();
  return (
    <section className="stack">
      <Failure>{error?.message}</Failure>
      {data && !data.operations.length && (
        <Empty icon="gauge" title={t("models.none")}>
          {t("models.noneHint")}
        </Empty>
      )}
      {data && data.providers.length > 0 && (
        <ul className="services">
          {data.providers.map((each) => (
            <li key={each.name} className="card service" data-status={each.state === "open" || each.problem ? "failed" : "ready"}>
              <span className="dot" aria-hidden="true" />
              <span>
                <strong dir="ltr">{each.name}</strong>
                <span className="hint block">
                  {t(`models.state_${stateOf(each)}` as "models.state_closed", { defaultValue: each.state ?? "" })}
                </span>
                {each.problem && (
                  <span className="hint block" dir="auto">
                    {may.operate ? each.problem : t("models.askOperator")}
                  </span>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
      {data?.operations.map((each) => (
        <OperationCard key={each.operation} operation={each} providers={data.providers} />
      ))}
    </section>
  );
}

/** What is known of a provider: one whose breaker is closed may still not answer. */
function stateOf(provider: Provider) {
  return provider.problem && provider.state === "closed" ? "away" : provider.state;
}

function OperationCard({ operation, providers }: { operation: Operation; providers: Provider[] }) {
  const { t } = useTranslation();
  const format = useFormat();
  const may = useMay();
  const queries = useQueryClient();
  const [choice, choose] = useState("");
  const params = { path: { operation: operation.operation } } as { path: { operation: never } };
  const again = () => queries.invalidateQueries({ queryKey: ["models"] });
  const set = useMutation({
    mutationFn: () => {
      const [provider = "", ...model] = choice.split("\n");
      return api.PUT("/v1/models/{operation}", { params, body: bodyOf<Schemas["ModelChoice"]>({ provider, model: model.join("\n") }) });
    },
    onSuccess: again,
  });
  const reset = useMutation({ mutationFn: () => api.DELETE("/v1/models/{operation}", { params }), onSuccess: again });
  const name = t(`models.operation_${operation.operation}` as "models.operation_answer", { defaultValue: operation.operation });
  return (
    <article className="card operation">
      <h2>{name}</h2>
      <ol className="chain" dir="ltr">
        {operation.chain.map((each) => (
          <li key={`${each.provider}-${each.model}`}>
            {each.model} <span className="hint">{each.provider}</span>
          </li>
        ))}
      </ol>
      {operation.set && (
        <p className="hint">{t("models.set", { by: operation.set_by, at: operation.set_at ? format.moment(operation.set_at) : "" })}</p>
      )}
      <Failure>{(set.error ?? reset.error)?.message}</Failure>
      {may.operate && (
        <div className="search-line">
          <Field label={t("models.choose")} className="grow">
            {(id) => (
              <select id={id} value={choice} onChange={(event) => choose(event.target.value)} dir="ltr">
                <option value="">–</option>
                {providers.flatMap((provider) =>
                  provider.models.map((model) => (
                    <option key={`${provider.name}-${model}`} value={`${provider.name}\n${model}`}>
                      {model} ({provider.name})
                    </option>
                  )),
                )}
              </select>
            )}
          </Field>
          <Button onPress={() => set.mutate()} isDisabled={!choice || set.isPending}>
            {t("models.use")}
          </Button>
          {operation.set && (
            <Button look="link" onPress={() => reset.mutate()}>
              {t("models.reset")}
            </Button>
          )}
        </div>
      )}
    </article>
  );
}
