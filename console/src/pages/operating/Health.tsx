import { useTranslation } from "react-i18next";
import { useFormat } from "../../i18n/format";
import { Icon } from "../../parts";
import { useHealth } from "../../shell/health";

export function Health() {
  const { t } = useTranslation();
  const format = useFormat();
  const health = useHealth();
  const services = Object.entries(health?.readiness?.services ?? {}).sort(([one], [other]) => one.localeCompare(other));
  const words = !health?.isReached ? t("shell.away") : health.isReady ? t("operating.well") : t("operating.unwell");
  return (
    <section className="stack" data-testid="state">
      <p className={health?.isReady ? "" : "warning"}>{words}</p>
      <ul className="services">
        {services.map(([name, { state, detail }]) => (
          <li key={name} className="card service" data-status={state === "serving" ? "ready" : "failed"}>
            <span className="dot" aria-hidden="true" />
            <span>
              <strong dir="ltr">{name}</strong>
              <span className="hint block">{t(`operating.state_${state}`)}</span>
              {detail && (
                <span className="hint block" dir="auto">
                  {detail}
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
      {(health?.readiness?.damage ?? []).map((each) => (
        <p key={`${each.where}-${each.kind}`} className="failure" dir="auto">
          <Icon name="warning" />
          <span>
            {format.moment(each.found_at)}: {each.detail} {each.advice}
          </span>
        </p>
      ))}
      <p className="hint">
        <a href="/openapi.json" download="groundwork-openapi.json">
          {t("operating.api")}
        </a>
      </p>
    </section>
  );
}
