// The memory mode of a collection: how chats over it use what is remembered of the user.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api } from "../../api/client";
import { Button, Dialog, Failure, Field } from "../../parts";
import { MEMORY_MODES, MemoryModeSelect, type MemoryMode } from "../../parts/memoryModes";

export function MemoryDialog({ collectionId, now, onClose }: { collectionId: string; now: string; onClose: () => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [chosen, choose] = useState<MemoryMode | "">(MEMORY_MODES.find((each) => each === now) ?? "");
  const change = useMutation({
    mutationFn: () =>
      api.PATCH("/v1/collections/{collection_id}", {
        params: { path: { collection_id: collectionId } },
        body: { memory: chosen || "unset" },
      }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["collections"] });
      onClose();
    },
  });
  return (
    <Dialog title={t("memoryMode.title")} isOpen onClose={onClose} className="small" testId="memory-dialog">
      <div className="stack">
        <Field label={t("memoryMode.how")} hint={t("memoryMode.collectionHint")}>
          {(id) => <MemoryModeSelect id={id} value={chosen} onChange={choose} testId="collection-memory" />}
        </Field>
        <Failure>{change.error?.message}</Failure>
        <div className="actions">
          <Button onPress={onClose}>{t("common.cancel")}</Button>
          <Button look="primary" onPress={() => change.mutate()} isDisabled={change.isPending} data-testid="memory-save">
            {t("common.save")}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
