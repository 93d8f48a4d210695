// Chooses the memory mode of a collection or of an API key: how what is remembered of the user is used there.

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button, Dialog, Failure, Field } from ".";
import { MEMORY_MODES, MemoryModeSelect, type MemoryMode } from "./memoryModes";

export function MemoryDialog({
  now,
  hint,
  onChoose,
  onClose,
}: {
  now: string;
  hint: string;
  onChoose: (mode: MemoryMode | "unset") => Promise<unknown>;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const [chosen, choose] = useState<MemoryMode | "">(MEMORY_MODES.find((each) => each === now) ?? "");
  const change = useMutation({ mutationFn: () => onChoose(chosen || "unset"), onSuccess: onClose });
  return (
    <Dialog title={t("memoryMode.title")} isOpen onClose={onClose} className="small" testId="memory-dialog">
      <div className="stack">
        <Field label={t("memoryMode.how")} hint={hint}>
          {(id) => <MemoryModeSelect id={id} value={chosen} onChange={choose} testId="memory-mode" />}
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
