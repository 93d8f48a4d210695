// Whether operations on a collection ask local models only.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api } from "../../api/client";
import { Button, Dialog, Failure } from "../../parts";

export function LocalModelsDialog({ collectionId, now, onClose }: { collectionId: string; now: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [isOnly, setOnly] = useState(now);
  const change = useMutation({
    mutationFn: () =>
      api.PATCH("/v1/collections/{collection_id}", {
        params: { path: { collection_id: collectionId } },
        body: { local_models_only: isOnly },
      }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["collections"] });
      onClose();
    },
  });
  return (
    <Dialog title={t("localModels.title")} isOpen onClose={onClose} className="small" testId="local-models-dialog">
      <div className="stack">
        <label className="check">
          <input type="checkbox" checked={isOnly} onChange={(event) => setOnly(event.target.checked)} data-testid="local-models-only" />{" "}
          {t("localModels.only")}
        </label>
        <p className="hint">{t("localModels.hint")}</p>
        <Failure>{change.error?.message}</Failure>
        <div className="actions">
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" onPress={() => change.mutate()} isDisabled={change.isPending} data-testid="local-models-save">
            {t("common.save")}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
