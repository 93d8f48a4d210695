// Who has which role on a collection, besides its owner: listed, given, taken.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { Button, Dialog, Failure, IconButton } from "../../parts";
import { SelectField, TextField } from "../../parts/fields";
import { ifMatch, wasChanged } from "./access";

type Member = Schemas["NewCollectionMember"];
type Listed = Schemas["CollectionMembers"] & { etag: string };

const PATH = "/v1/collections/{collection_id}/members";
const KINDS: Member["kind"][] = ["subject", "group"];
const ROLES: Member["role"][] = ["viewer", "editor", "owner"];

export function MembersDialog({ collectionId, name, onClose }: { collectionId: string; name: string; onClose: () => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const path = { collection_id: collectionId };
  const key = ["members", collectionId];
  const { data, error } = useQuery({
    queryKey: key,
    queryFn: async () => listed(await api.GET(PATH, { params: { path }, cache: "no-store" })),
  });
  const [who, setWho] = useState("");
  const [kind, setKind] = useState<Member["kind"]>("subject");
  const [role, setRole] = useState<Member["role"]>("viewer");
  const onSuccess = (now: Listed) => queries.setQueryData(key, now);
  const onError = (error: Error) => wasChanged(error) && void queries.invalidateQueries({ queryKey: key });
  const header = ifMatch(data?.etag ?? "");
  const give = useMutation({
    mutationFn: async (member: Member) => listed(await api.PUT(PATH, { params: { path, header }, body: bodyOf<Member>(member) })),
    onSuccess,
    onError,
  });
  const take = useMutation({
    mutationFn: async (query: { kind: Member["kind"]; name: string }) =>
      listed(await api.DELETE(PATH, { params: { path, query, header } })),
    onSuccess,
    onError,
  });
  const failed = error ?? give.error ?? take.error;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    give.mutate({ kind, name: who.trim(), role }, { onSuccess: () => setWho("") });
  };
  return (
    <Dialog title={t("members.title", { name })} isOpen onClose={onClose} className="small" testId="members">
      <div className="stack">
        <Failure>{wasChanged(failed) ? t("access.changed") : failed?.message}</Failure>
        <ul className="stack">
          {data?.members.map((each) => (
            <li key={`${each.kind} ${each.name}`} className="actions start" data-testid="member">
              <bdi>{each.name}</bdi>
              <span className="hint">
                {t(`members.${each.kind}` as "members.group", { defaultValue: each.kind ?? "" })},{" "}
                {t(`members.${each.role}` as "members.viewer", { defaultValue: each.role ?? "" })}
              </span>
              <IconButton
                label={t("members.remove", { name: each.name })}
                icon="trash"
                onPress={() => take.mutate({ kind: each.kind as Member["kind"], name: each.name })}
              />
            </li>
          ))}
          {data?.members.length === 0 && <li className="hint">{t("members.none")}</li>}
        </ul>
        <form className="stack" onSubmit={submit}>
          <SelectField label={t("members.kind")} value={kind} options={KINDS} words={(each) => t(`members.${each}`)} onChange={setKind} />
          <TextField label={t("members.name")} value={who} onChange={setWho} maxLength={128} testId="member-name" />
          <SelectField
            label={t("members.role")}
            hint={t(`members.${role}Hint`)}
            value={role}
            options={ROLES}
            words={(each) => t(`members.${each}`)}
            onChange={setRole}
          />
          <div className="actions">
            <Button onPress={onClose}>{t("common.close")}</Button>
            <Button look="primary" type="submit" isDisabled={!who.trim() || give.isPending} data-testid="give-role">
              {t("members.give")}
            </Button>
          </div>
        </form>
      </div>
    </Dialog>
  );
}

/** The members with the server's name for this state of the list. */
function listed(answer: { data?: Schemas["CollectionMembers"]; response: Response }): Listed {
  return { members: answer.data?.members ?? [], etag: answer.response.headers.get("ETag") ?? "" };
}
