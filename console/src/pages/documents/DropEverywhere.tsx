// The whole page takes files: nobody should lose the page by missing a box.

import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Icon } from "../../parts";
import { useMay } from "../../shell/caller";
import { askingNow } from "../conversation/asking";
import { useCollections, useMeant } from "./collections";
import { droppedFiles } from "./dropped";
import { upload } from "./uploads";

export function DropEverywhere() {
  const { t } = useTranslation();
  const may = useMay();
  const navigate = useNavigate();
  const { nameOf } = useCollections();
  const [isOver, setOver] = useState(false);
  const shown = new URLSearchParams(location.search).get("collection") || askingNow().collection;
  const target = useMeant(shown);
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
      if (!files.length) return;
      upload(files, target);
      navigate({ to: "/documents", search: { collection: target } });
    };
    document.addEventListener("dragover", over);
    document.addEventListener("dragleave", leave);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("dragleave", leave);
      document.removeEventListener("drop", drop);
    };
  }, [may.change, target, navigate]);
  return isOver ? (
    <div className="drop-over" aria-hidden="true">
      <Icon name="upload" /> {t("documents.dropInto", { name: nameOf(target) })}
    </div>
  ) : null;
}
