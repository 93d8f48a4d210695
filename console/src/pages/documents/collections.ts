// The collections that the caller may read.

import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import type { Collection } from "../../api/types";
import { useDocuments } from "./feed";

const DEFAULT = /^default(-[0-9a-f]{8})?$/;

async function listed(): Promise<{ collections: Collection[]; own: string }> {
  const { collections } = await dataOf(api.GET("/v1/collections"));
  return { collections, own: await ownDefault(collections) };
}

/** The id of the caller's own default collection. Who sees all sees those of others too, also where there is none of their own. */
async function ownDefault(collections: Collection[]): Promise<string> {
  const ids = collections.map(({ id }) => id).filter((id) => DEFAULT.test(id));
  if (ids.includes("default")) return "default";
  return (await dataOf(api.GET("/v1/collections/{collection_id}", { params: { path: { collection_id: "default" } } }))).id;
}

export function useCollections() {
  const query = useQuery({ queryKey: ["collections"], queryFn: listed, staleTime: 30_000 });
  const collections = query.data?.collections ?? [];
  const own = query.data?.own ?? "default";
  const owner = collections.find((each) => each.id === own)?.owner;
  return {
    ...query,
    collections,
    own,
    nameOf: (id: string | null | undefined) => collections.find((each) => each.id === id)?.name || id || "",
    /** Whether its documents are the caller's to change. While that is not known they may try. */
    mayEdit: (id: string | null | undefined) => collections.find((each) => each.id === id)?.role !== "viewer",
    ownNamed: (name: string) => collections.find((each) => each.name === name && each.owner === owner)?.id,
  };
}

/**
 * The collection of a page: `wanted` where there is one of that id, else the one with the most documents, else one's own.
 * Empty until that is known, so that nothing goes into a collection that nobody chose.
 */
export function useChosenCollection(wanted: string): string {
  const { collections, own, isSuccess } = useCollections();
  const { documents, isComplete } = useDocuments();
  if (collections.some((each) => each.id === wanted)) return wanted;
  if (!isSuccess || !isComplete) return "";
  const counts = new Map<string, number>();
  for (const { collection_id: id } of documents) if (id) counts.set(id, (counts.get(id) ?? 0) + 1);
  const known = [...counts].filter(([id]) => collections.some((each) => each.id === id));
  return known.sort(([, one], [, other]) => other - one)[0]?.[0] ?? own;
}
