// Where a passage is shown: beside the answer, on small screens over it.

import { lazy, useSyncExternalStore } from "react";
import { Dialog as AriaDialog, Modal, ModalOverlay } from "react-aria-components";
import { useTranslation } from "react-i18next";
import { Later } from "../shell/Later";
import { closePassage, useShown } from "./shown";

const Panel = lazy(async () => ({ default: (await import("./PassagePanel")).PassagePanel }));
const wide = matchMedia("(min-width: 70rem)");

export function PassagePlace() {
  const { t } = useTranslation();
  const shown = useShown();
  const isWide = useSyncExternalStore(
    (heard) => {
      wide.addEventListener("change", heard);
      return () => wide.removeEventListener("change", heard);
    },
    () => wide.matches,
  );
  if (!shown) return null;
  const panel = (
    <Later>
      <Panel shown={shown} />
    </Later>
  );
  if (isWide) {
    return (
      <aside className="panel" aria-label={t("passage.title")} data-testid="passage">
        {panel}
      </aside>
    );
  }
  return (
    <ModalOverlay className="overlay drawer-overlay" isOpen isDismissable onOpenChange={(open) => !open && closePassage()}>
      <Modal className="drawer">
        <AriaDialog className="panel" aria-label={t("passage.title")} data-testid="passage">
          {panel}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}
