// The embedding model of a collection: which there is, and the change to another one, built beside the one that is searched.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { useFormat } from "../../i18n/format";
import { Button, Dialog, Failure, Field } from "../../parts";

const LOOK_EVERY_MS = 3000;
type Act = "begin" | "swap" | "rollback" | "drop";

export function EmbeddingDialog({ collectionId, name, onClose }: { collectionId: string; name: string; onClose: () => void }) {
  const { t } = useTranslation();
  const format = useFormat();
  const queries = useQueryClient();
  const params = { path: { collection_id: collectionId } };
  const key = ["embedding", collectionId];
  const { data, error } = useQuery({
    queryKey: key,
    queryFn: () => dataOf(api.GET("/v1/collections/{collection_id}/embedding", { params })),
    refetchInterval: LOOK_EVERY_MS,
  });
  const [model, setModel] = useState("");
  const act = useMutation({
    mutationFn: async (what: Act): Promise<Schemas["Embedding"]> => {
      if (what === "begin")
        return dataOf(
          api.POST("/v1/collections/{collection_id}/embedding", { params, body: bodyOf<Schemas["EmbeddingChange"]>({ model }) }),
        );
      if (what === "swap") return dataOf(api.POST("/v1/collections/{collection_id}/embedding/swap", { params, body: bodyOf({}) }));
      if (what === "rollback") return dataOf(api.POST("/v1/collections/{collection_id}/embedding/rollback", { params }));
      return dataOf(api.DELETE("/v1/collections/{collection_id}/embedding", { params }));
    },
    onSuccess: (next) => queries.setQueryData(key, next),
  });
  const others = (data?.available_models ?? []).filter((each) => each !== data?.model);
  return (
    <Dialog title={t("embedding.title", { name })} isOpen onClose={onClose} className="small">
      <div className="stack">
        <Failure>{error?.message ?? act.error?.message ?? data?.problem}</Failure>
        {data && (
          <dl className="facts">
            <div>
              <dt>{t("embedding.model")}</dt>
              <dd dir="ltr">{data.model ?? "–"}</dd>
            </div>
            <div>
              <dt>{t("embedding.stage")}</dt>
              <dd>{t(`embedding.stage_${data.stage}` as "embedding.stage_settled", { defaultValue: data.stage ?? "" })}</dd>
            </div>
            {data.other_model && (
              <div>
                <dt>{t("embedding.other")}</dt>
                <dd dir="ltr">
                  {data.other_model} ({format.number(data.in_other_model.document_count)} / {format.number(data.whole.document_count)})
                </dd>
              </div>
            )}
          </dl>
        )}
        {data?.stage === "settled" &&
          (others.length ? (
            <Field label={t("embedding.choose")} hint={t("embedding.hint")}>
              {(id) => (
                <select id={id} value={model} onChange={(event) => setModel(event.target.value)} dir="ltr">
                  <option value="">–</option>
                  {others.map((each) => (
                    <option key={each}>{each}</option>
                  ))}
                </select>
              )}
            </Field>
          ) : (
            <p className="hint">{t("embedding.none")}</p>
          ))}
        <div className="actions">
          {data?.stage === "settled" && others.length > 0 && (
            <Button look="primary" isDisabled={!model || act.isPending} onPress={() => act.mutate("begin")}>
              {t("embedding.begin")}
            </Button>
          )}
          {data?.stage === "ready" && (
            <Button look="primary" isDisabled={act.isPending} onPress={() => act.mutate("swap")}>
              {t("embedding.swap")}
            </Button>
          )}
          {data?.stage === "swapped" && (
            <Button isDisabled={act.isPending} onPress={() => act.mutate("rollback")}>
              {t("embedding.rollback")}
            </Button>
          )}
          {data?.other_model && (
            <Button isDisabled={act.isPending} onPress={() => act.mutate("drop")}>
              {t("embedding.drop")}
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  );
}
