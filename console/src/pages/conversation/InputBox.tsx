import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { api } from "../../api/client";
import { useFormat } from "../../i18n/format";
import { Button, Failure, Field } from "../../parts";
import type { FoldedRun } from "../../run/fold";

/** A question of a run to its user, with a box for the answer. */
export function InputBox({ runId, input }: { runId: string; input: NonNullable<FoldedRun["input"]> }) {
  const { t } = useTranslation();
  const format = useFormat();
  const [text, setText] = useState("");
  const answer = useMutation({
    mutationFn: () => api.POST("/v1/runs/{run_id}/input", { params: { path: { run_id: runId } }, body: { text } }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) answer.mutate();
  };
  const hint = input.expires_at ? t("input.expires", { moment: format.moment(input.expires_at) }) : undefined;
  return (
    <form className="approval card stack" onSubmit={submit} data-testid="input-box">
      <Field label={input.question} hint={hint}>
        {(id) => (
          <input
            id={id}
            value={text}
            maxLength={2000}
            onChange={(event) => setText(event.target.value)}
            dir="auto"
            data-testid="input-text"
          />
        )}
      </Field>
      <Failure>{answer.error?.message}</Failure>
      <div className="actions">
        <Button look="primary" type="submit" isDisabled={answer.isPending || answer.isSuccess} data-testid="input-send">
          {t("input.answer")}
        </Button>
      </div>
    </form>
  );
}
