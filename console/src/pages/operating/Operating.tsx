// Operating, by what the caller may: health, jobs and dead letters, models, keys, costs, limits, what research cost, and the audit log.

import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Segments } from "../../parts";
import { useMay } from "../../shell/caller";
import { Audit } from "./Audit";
import { Health } from "./Health";
import { Jobs } from "./Jobs";
import { Keys } from "./Keys";
import { Limits } from "./Limits";
import { Models } from "./Models";
import { Runs } from "./Runs";
import { Usage } from "./Usage";
import "../../style/pages.css";

type Part = "health" | "jobs" | "models" | "keys" | "usage" | "limits" | "runs" | "audit";
const OF_GUESTS: Part[] = ["usage", "limits", "runs"];
const PARTS = { health: Health, jobs: Jobs, models: Models, keys: Keys, usage: Usage, limits: Limits, runs: Runs, audit: Audit };

export function Operating() {
  const { t } = useTranslation();
  const may = useMay();
  const [part, choose] = useState<Part>("health");
  const offered = (["health", "usage", "limits", "runs", "jobs", "models", "keys", "audit"] as Part[]).filter(
    (each) => (each !== "jobs" || may.change) && (each !== "audit" || may.administer) && (!may.isGuest || OF_GUESTS.includes(each)),
  );
  const shown = offered.includes(part) ? part : "usage";
  const Shown = PARTS[shown];
  return (
    <div className="column wide">
      <header className="page-head">
        <h1>{t("shell.operating")}</h1>
      </header>
      <div className="scroll-x">
        <Segments
          label={t("operating.part")}
          value={shown}
          options={offered.map((id) => ({ id, label: t(`operating.${id}`) }))}
          onChange={choose}
          testId="operating"
        />
      </div>
      <Shown />
    </div>
  );
}
