import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Dialog } from "../parts";
import { KEYS, useKey, type KeyAction } from "./keys";

/** The list of all keys, on `?`. */
export function KeyList() {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  useKey("help", () => setOpen(true));
  useEffect(() => {
    const open = () => setOpen(true);
    document.addEventListener("groundwork:keys", open);
    return () => document.removeEventListener("groundwork:keys", open);
  }, []);
  return (
    <Dialog title={t("keys.title")} isOpen={isOpen} onClose={() => setOpen(false)} className="small" testId="keys">
      <dl className="keys">
        {(Object.keys(KEYS) as KeyAction[]).map((action) => (
          <div key={action}>
            <dt>{t(`keys.${action}`)}</dt>
            <dd dir="ltr">
              {KEYS[action].split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <p className="hint">{t("keys.hint")}</p>
    </Dialog>
  );
}
