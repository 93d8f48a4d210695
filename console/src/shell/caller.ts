// What the caller may do: what they may not is not offered. While that is not known all is offered, and the server refuses.

import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { isGuest, noteIdentity } from "../api/key";
import type { Schemas } from "../api/types";

export interface May {
  change: boolean;
  /** Makes collections, shares and changes them, and reaches what lies outside: all but guests. */
  arrange: boolean;
  administer: boolean;
  operate: boolean;
  isGuest: boolean;
  subject: string;
  tenant: string;
}

async function loadCaller(): Promise<Schemas["Caller"]> {
  const caller = await dataOf(api.GET("/v1/me"));
  noteIdentity(caller);
  return caller;
}

export function useMay(): May {
  const { data } = useQuery({ queryKey: ["me"], queryFn: loadCaller, staleTime: 60_000 });
  const has = (scope: Schemas["Caller"]["scopes"][number]) => !data || data.scopes.includes(scope);
  const isVisitor = isGuest(data?.subject ?? "");
  return {
    change: has("ingest"),
    arrange: has("ingest") && !isVisitor,
    isGuest: isVisitor,
    administer: has("admin"),
    operate: has("operator"),
    subject: data?.subject ?? "",
    tenant: data?.tenant ?? "",
  };
}
