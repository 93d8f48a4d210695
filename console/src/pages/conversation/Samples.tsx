// The sample documents: one button where there are no documents yet, and afterwards questions to click.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, bodyOf, call, dataOf } from "../../api/client";
import type { Schemas } from "../../api/types";
import { Button, Failure, Icon, Status } from "../../parts";
import { useMay } from "../../shell/caller";
import { useCollections } from "../documents/collections";
import { useDocuments } from "../documents/feed";
import { upload, useUploads } from "../documents/uploads";
import { changeAsking, useAsking } from "./asking";

interface SampleList {
  collection: string;
  documents: string[];
  questions: string[];
}

export function Samples({ onAsk }: { onAsk: (text: string) => Promise<void> }) {
  const { t } = useTranslation();
  const may = useMay();
  const queries = useQueryClient();
  const { way } = useAsking();
  const { documents, isComplete } = useDocuments();
  const { ownNamed } = useCollections();
  const uploads = useUploads();
  const { data: samples } = useQuery({
    queryKey: ["samples"],
    queryFn: async (): Promise<SampleList> => (await call("/samples/samples.json")).json(),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const [isLoading, setLoading] = useState(false);
  const [problem, setProblem] = useState("");
  if (!samples || !isComplete) return null;
  const id = ownNamed(samples.collection);
  const load = async () => {
    setLoading(true);
    setProblem("");
    try {
      const files = await Promise.all(samples.documents.map(fetched));
      const target =
        id ?? (await dataOf(api.POST("/v1/collections", { body: bodyOf<Schemas["NewCollection"]>({ name: samples.collection }) }))).id;
      await queries.invalidateQueries({ queryKey: ["collections"] });
      changeAsking({ way: "documents", collection: target });
      upload(
        files.map((file) => ({ file, name: file.name })),
        target,
      );
    } catch (error) {
      setProblem((error as Error).message);
    }
    setLoading(false);
  };
  if (documents.length === 0 && uploads.pending === 0) {
    return may.arrange ? (
      <section className="samples card">
        <Icon name="book" />
        <div>
          <h2>{t("samples.title")}</h2>
          <p className="hint">{t("samples.hint")}</p>
          <Failure>{problem}</Failure>
        </div>
        <Button onPress={load} isDisabled={isLoading} data-testid="load-samples">
          {t("samples.load")}
        </Button>
      </section>
    ) : null;
  }
  const mine = documents.filter((each) => each.collection_id === id);
  const ready = samples.documents.filter((name) => mine.some((each) => each.name === name && each.status === "ready")).length;
  // A question that is asked before all are read may find nothing.
  const isReading = uploads.pending > 0 || mine.some(({ status }) => status === "queued" || status === "processing");
  if (isReading && mine.length) {
    return <Status className="hint">{t("samples.reading", { ready, count: samples.documents.length })}</Status>;
  }
  if (!id || ready === 0) return null;
  const ask = (question: string) => {
    if (way !== "chat") changeAsking({ collection: id });
    onAsk(question).catch((error: Error) => setProblem(error.message));
  };
  return (
    <section className="suggestions" aria-labelledby="suggestions-title" data-testid="suggestions">
      <h2 id="suggestions-title" className="hint">
        {t("samples.answer")}
      </h2>
      <ul>
        {samples.questions.map((question) => (
          <li key={question}>
            <Button look="secondary" onPress={() => ask(question)} data-testid="suggestion">
              <span dir="auto">{question}</span>
            </Button>
          </li>
        ))}
      </ul>
      <Failure>{problem}</Failure>
    </section>
  );
}

async function fetched(name: string): Promise<File> {
  return new File([await (await call(`/samples/${encodeURIComponent(name)}`)).blob()], name);
}
