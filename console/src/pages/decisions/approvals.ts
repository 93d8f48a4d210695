// Calls of tools that wait for a person, for all runs: watched, so that the badge is right everywhere.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import type { Approval } from "../../api/types";
import type { AskedApproval } from "../../run/fold";

const LOOK_EVERY_MS = 20_000;

/** A call to decide about, of the listing or of a run's event. */
export type Asked = Pick<
  Approval,
  "id" | "run_id" | "tool" | "arguments" | "arguments_hash" | "expires_at" | "may_decide" | "is_tainted" | "tainted_arguments"
> &
  Partial<Pick<Approval, "yours_to_decide" | "subject">>;

/** Whether the one who looks may decide; the event of a run does not say, and then the server does. */
export function isMine({ yours_to_decide: mine = true }: Pick<Asked, "yours_to_decide">): boolean {
  return mine;
}

export function askedOf(approval: AskedApproval): Asked {
  return { ...approval, id: approval.id ?? "" } as Asked;
}

export function useApprovals() {
  const query = useQuery({
    queryKey: ["approvals"],
    queryFn: async () => (await dataOf(api.GET("/v1/approvals"))).approvals,
    refetchInterval: LOOK_EVERY_MS,
  });
  const approvals: Asked[] = query.data ?? [];
  return { ...query, approvals, mine: approvals.filter(isMine).length };
}

/** Decides about a call as it was read: its hash goes along. */
export function useDecide(asked: Asked) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (decision: "allow" | "deny") =>
      dataOf(
        api.POST("/v1/approvals/{approval_id}", {
          params: { path: { approval_id: asked.id } },
          body: { decision, arguments_hash: asked.arguments_hash },
        }),
      ),
    onSettled: () => queries.invalidateQueries({ queryKey: ["approvals"] }),
  });
}
