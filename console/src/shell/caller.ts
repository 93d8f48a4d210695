// What the caller may do: what they may not is not offered. While that is not known all is offered, and the server refuses.

import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { noteIdentity } from "../api/key";
import type { Schemas } from "../api/types";

export interface May {
  change: boolean;
  administer: boolean;
  operate: boolean;
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
  return {
    change: has("ingest"),
    administer: has("admin"),
    operate: has("operator"),
    subject: data?.subject ?? "",
    tenant: data?.tenant ?? "",
  };
}
