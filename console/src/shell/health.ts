// How the system is: looked at every few seconds, sooner while something is wrong, and at once when a request loses the server.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { whenLost } from "../api/client";
import { keyHeaders } from "../api/key";
import type { Schemas } from "../api/types";

const WELL_MS = 15_000;
const UNWELL_MS = 1_500;
const WAIT_MS = 5_000; // an answer that takes longer is none

export interface Health {
  isReached: boolean;
  isReady: boolean;
  readiness: Schemas["Readiness"] | null;
}

async function look(): Promise<Health> {
  try {
    const response = await fetch("/readyz", { headers: keyHeaders(), signal: AbortSignal.timeout(WAIT_MS) });
    return { isReached: true, isReady: response.ok, readiness: await response.json() };
  } catch {
    return { isReached: false, isReady: false, readiness: null };
  }
}

export function useHealth(): Health | undefined {
  const queries = useQueryClient();
  useEffect(() => {
    const again = () => void queries.invalidateQueries({ queryKey: ["health"] });
    const stop = whenLost(again);
    window.addEventListener("online", again);
    window.addEventListener("offline", again);
    return () => {
      stop();
      window.removeEventListener("online", again);
      window.removeEventListener("offline", again);
    };
  }, [queries]);
  const { data } = useQuery({
    queryKey: ["health"],
    queryFn: look,
    networkMode: "always",
    refetchInterval: (query) => (query.state.data?.isReady === false ? UNWELL_MS : WELL_MS),
  });
  return data;
}
