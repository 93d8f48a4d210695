// The whole page takes files: nobody should lose the page by missing a box.

import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Icon } from "../../parts";
import { useMay } from "../../shell/caller";
import { askingNow } from "../conversation/asking";
import { useCollections, useChosenCollection } from "./collections";
import { droppedFiles } from "./dropped";
import { type NamedFile, upload } from "./uploads";

export function DropEverywhere() {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  const { nameOf } = useCollections();
  const [isOver, setOver] = useState(false);
  const [dropped, setDropped] = useState<NamedFile[]>([]);
  const shown = new URLSearchParams(location.search).get("collection") || askingNow().collection;
  const target = useChosenCollection(shown);
  useEffect(() => {
    if (!may.change) return;
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const drop = async (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(false);
      const files = await droppedFiles(event.dataTransfer);
      setDropped((before) => [...before, ...files]);
    };
    document.addEventListener("dragover", over);
    document.addEventListener("dragleave", leave);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("dragleave", leave);
      document.removeEventListener("drop", drop);
    };
  }, [may.change]);
  useEffect(() => {
    if (!target || !dropped.length) return;
    setDropped([]);
    upload(dropped, target);
    navigate({ to: "/documents", search: { collection: target } });
  }, [target, dropped, navigate]);
  return isOver ? (
    <div className="drop-over" aria-hidden="true">
      <Icon name="upload" /> {t("documents.dropInto", { name: nameOf(target) })}
    </div>
  ) : null;
}
