// Where files are taken, and how far they are on their way: all together, with what was not taken and why.

import { useRef } from "react";
import { useTranslation } from "react-i18next";
import { useFormat } from "../../i18n/format";
import { Button, Icon, IconButton, Name, Status } from "../../parts";
import { chosenFiles } from "./dropped";
import { clearEnded, retryFailed, upload, useUploads } from "./uploads";

const SHOWN_SENDING = 4;
const ESTIMATE_AFTER_MS = 2000;

/** Takes files as soon as it is known which collection they are for. */
export function UploadBox({ collection }: { collection: string }) {
  const { t } = useTranslation();
  const folder = useRef<HTMLInputElement>(null);
  const take = (input: HTMLInputElement) => {
    upload(chosenFiles([...(input.files ?? [])]), collection);
    input.value = "";
  };
  return (
    <div className="upload-box">
      <label className="drop" htmlFor="file-input">
        <Icon name="upload" />
        <span>
          <span className="drop-title">{t("upload.drop")}</span>
          <span className="hint">{t("upload.formats")}</span>
        </span>
        <input
          id="file-input"
          type="file"
          multiple
          className="visually-hidden"
          disabled={!collection}
          data-testid="file-input"
          onChange={(event) => take(event.target)}
        />
      </label>
      <Button icon="folder" isDisabled={!collection} onPress={() => folder.current?.click()}>
        {t("upload.folder")}
      </Button>
      <input
        ref={(element) => {
          folder.current = element;
          element?.setAttribute("webkitdirectory", "");
        }}
        type="file"
        hidden
        data-testid="folder-input"
        onChange={(event) => take(event.target)}
      />
    </div>
  );
}

export function UploadList() {
  const { t } = useTranslation();
  const format = useFormat();
  const { all, pending, failed, taken, sentBytes, totalBytes, beganAt } = useUploads();
  if (!all.length) return null;
  const took = Date.now() - beganAt;
  const left = pending && took > ESTIMATE_AFTER_MS && sentBytes ? (took / 1000) * (totalBytes / sentBytes - 1) : 0;
  const sending = all.filter((each) => each.state === "sending");
  return (
    <section className="uploads card" aria-label={t("upload.title")} data-testid="uploads">
      <header>
        <Status>
          {pending ? t("upload.sending", { done: all.length - pending, count: all.length }) : t("upload.taken", { count: taken })}
          {failed.length > 0 && <span className="failure-count"> {t("upload.failed", { count: failed.length })}</span>}
          {left > 1 && <span className="hint"> {t("upload.left", { time: format.duration(left) })}</span>}
        </Status>
        {failed.length > 1 && (
          <Button look="link" icon="retry" onPress={() => retryFailed()}>
            {t("upload.retryAll")}
          </Button>
        )}
        {!pending && <IconButton label={t("upload.clear")} icon="close" onPress={() => clearEnded()} data-testid="clear-uploads" />}
      </header>
      {pending > 0 && <progress max={totalBytes || 1} value={sentBytes} aria-label={t("upload.all")} />}
      <ul>
        {sending.slice(0, SHOWN_SENDING).map((each) => (
          <li key={each.id} className="upload" data-testid="upload-row" data-status="sending">
            <Name>{each.name}</Name>
            <progress max={1} value={each.share} aria-label={t("upload.one", { name: each.name })} />
          </li>
        ))}
        {failed.map((each) => (
          <li key={each.id} className="upload" data-testid="upload-row" data-status="failed">
            <Icon name="warning" />
            <span className="row-text">
              <Name>{each.name}</Name>
              <span className="failure-words" dir="auto">
                {each.problem === "connection" ? t("upload.lost") : each.problem}
              </span>
            </span>
            <IconButton label={t("upload.retry", { name: each.name })} icon="retry" onPress={() => retryFailed(each.id)} />
            <IconButton label={t("upload.dismiss", { name: each.name })} icon="close" onPress={() => clearEnded(each.id)} />
          </li>
        ))}
      </ul>
    </section>
  );
}
