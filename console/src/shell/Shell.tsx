// What stands around every page: the ways to the pages, the conversations, the passage beside the answer, and what is wrong.

import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect, useState, type ReactNode } from "react";
import { I18nProvider } from "react-aria-components";
import { useTranslation } from "react-i18next";
import type { TFunction } from "i18next";
import { signOut, useHasKey } from "../api/key";
import { LANGUAGES, chooseLanguage, type Language } from "../i18n";
import { useApprovals } from "../pages/decisions/approvals";
import { ConversationList } from "../pages/conversation/ConversationList";
import { useDocumentFeed } from "../pages/documents/feed";
import { DropEverywhere } from "../pages/documents/DropEverywhere";
import { PassagePlace } from "../passage/PassagePlace";
import { Button, Icon, IconButton, Status } from "../parts";
import type { IconName } from "../parts/icons";
import { useMay } from "./caller";
import { useHealth } from "./health";
import { KeyDialog, useIssuers } from "./KeyDialog";
import { KeyList } from "./KeyList";
import { useKey } from "./keys";
import { useOutdated, wasRenewed } from "./renewal";
import { chooseTheme, useTheme } from "./theme";

export function Shell() {
  const { t, i18n } = useTranslation();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => setMenuOpen(false), [path]);
  useDocumentFeed();
  return (
    <I18nProvider locale={i18n.language}>
      <a className="skip" href="#page">
        {t("shell.skip")}
      </a>
      <div className={`shell ${isMenuOpen ? "menu-open" : ""}`}>
        <header className="top">
          <IconButton
            label={t("shell.menu")}
            icon="menu"
            className="menu-button"
            onPress={() => setMenuOpen(!isMenuOpen)}
            aria-expanded={isMenuOpen}
          />
          <Brand />
          <DecisionsBadge />
        </header>
        <div className="scrim" onClick={() => setMenuOpen(false)} aria-hidden="true" />
        <nav className="side" aria-label={t("shell.pages")}>
          <Brand />
          <PageLinks />
          <ConversationList />
          <Foot />
        </nav>
        <main id="page" className="page" tabIndex={-1}>
          <SystemLine />
          <RenewedLine />
          <OutdatedLine />
          <Suspense fallback={<p className="loading">{t("common.loading")}</p>}>
            <Outlet />
          </Suspense>
        </main>
        <PassagePlace />
      </div>
      <DropEverywhere />
      <KeyDialog />
      <KeyList />
      <Going />
    </I18nProvider>
  );
}

function Brand() {
  return (
    <Link to="/" className="brand">
      <img src="/console/icon.svg" alt="" width="26" height="26" /> Groundwork
    </Link>
  );
}

function PageLinks() {
  const { t } = useTranslation();
  const { isGuest } = useMay();
  return (
    <ul className="pages">
      <PageLink to="/" icon="add" label={t("shell.new")} testId="new-conversation" />
      <PageLink to="/documents" icon="document" label={t("shell.documents")} />
      {!isGuest && <PageLink to="/sources" icon="link" label={t("shell.sources")} />}
      {!isGuest && <PageLink to="/connections" icon="tool" label={t("shell.connections")} />}
      <PageLink to="/search" icon="search" label={t("shell.search")} />
      {!isGuest && (
        <PageLink to="/decisions" icon="scale" label={t("shell.decisions")}>
          <ApprovalCount />
        </PageLink>
      )}
      <PageLink to="/memory" icon="memory" label={t("shell.memory")} />
      <PageLink to="/operating" icon="gauge" label={t("shell.operating")} />
    </ul>
  );
}

type Path = "/" | "/documents" | "/sources" | "/connections" | "/search" | "/decisions" | "/memory" | "/operating";

function PageLink({
  to,
  icon,
  label,
  children,
  testId,
}: {
  to: Path;
  icon: IconName;
  label: string;
  children?: ReactNode;
  testId?: string;
}) {
  return (
    <li>
      <Link to={to} className="page-link" activeOptions={{ exact: true, includeSearch: false }} data-testid={testId}>
        <Icon name={icon} />
        <span>{label}</span>
        {children}
      </Link>
    </li>
  );
}

function ApprovalCount() {
  const { t } = useTranslation();
  const { mine } = useApprovals();
  return mine ? (
    <span className="badge" data-testid="approvals-count">
      {mine}
      <span className="visually-hidden"> {t("shell.waiting", { count: mine })}</span>
    </span>
  ) : null;
}

function DecisionsBadge() {
  const { t } = useTranslation();
  const { mine } = useApprovals();
  return mine ? (
    <Link to="/decisions" className="top-badge" aria-label={t("shell.waiting", { count: mine })}>
      <Icon name="scale" /> <span className="badge">{mine}</span>
    </Link>
  ) : null;
}

function Foot() {
  const { t, i18n } = useTranslation();
  const theme = useTheme();
  const hasKey = useHasKey();
  const hasLogins = useIssuers().length > 0;
  const may = useMay();
  return (
    <footer className="side-foot">
      <label className="language">
        <Icon name="language" />
        <span className="visually-hidden">{t("shell.language")}</span>
        <select value={i18n.language} onChange={(event) => chooseLanguage(event.target.value as Language, true)} data-testid="language">
          {Object.entries(LANGUAGES).map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <IconButton
        label={theme === "dark" ? t("shell.light") : t("shell.dark")}
        icon={theme === "dark" ? "sun" : "moon"}
        onPress={() => chooseTheme(theme === "dark" ? "light" : "dark")}
        data-testid="theme"
      />
      <IconButton
        label={t("shell.keys")}
        icon="help"
        onPress={() => document.dispatchEvent(new Event("groundwork:keys"))}
        data-testid="keys-button"
      />
      {(hasKey || hasLogins || may.isGuest) && (
        <IconButton label={t("shell.signOut", { subject: may.subject })} icon="key" onPress={signOut} data-testid="sign-out" />
      )}
    </footer>
  );
}

/** That the console was updated while it was open. */
function RenewedLine() {
  const { t } = useTranslation();
  const [isShown, setShown] = useState(wasRenewed);
  return (
    <Status className="system-line">
      {isShown && (
        <span className="system" data-testid="renewed">
          {t("shell.renewed")}
          <IconButton label={t("common.close")} icon="close" onPress={() => setShown(false)} />
        </span>
      )}
    </Status>
  );
}

/** That the server has another build, where the page does not load itself anew: what is not saved on it would be lost. */
function OutdatedLine() {
  const { t } = useTranslation();
  const isOutdated = useOutdated();
  return (
    <Status className="system-line">
      {isOutdated && (
        <span className="system" data-testid="outdated">
          {t("shell.outdated")}
          <Button look="link" onPress={() => location.reload()}>
            {t("shell.renew")}
          </Button>
        </span>
      )}
    </Status>
  );
}

/** What is wrong with the system, as soon as something is. */
function SystemLine() {
  const { t } = useTranslation();
  const health = useHealth();
  const text = health ? wordsOf(health, t) : "";
  return (
    <Status className="system-line">
      {text && (
        <span className="system" data-testid="system" dir="auto">
          <Icon name="warning" /> <span>{text}</span>
          {health?.isReady && (
            <Link to="/operating" className="system-more">
              {t("shell.lacksMore")}
            </Link>
          )}
        </span>
      )}
    </Status>
  );
}

function wordsOf({ isReached, isReady, readiness }: NonNullable<ReturnType<typeof useHealth>>, t: TFunction): string {
  if (!isReached) return navigator.onLine ? t("shell.away") : t("shell.offline");
  const services = Object.entries(readiness?.services ?? {});
  if (isReady) {
    const lacking = services.filter(([, { detail }]) => detail);
    if (!lacking.length) return "";
    const isModel = lacking.every(([, { kinds = [] }]) => kinds.join() === "language_model");
    return isModel ? t("shell.lacksModel") : t("shell.lacks", { services: lacking.map(([name]) => name).join(", ") });
  }
  return t("shell.waitingFor", {
    services: services
      .filter(([, { state }]) => state !== "serving")
      .map(([name]) => name)
      .join(", "),
  });
}

/** The keys that lead from page to page. */
function Going() {
  const navigate = useNavigate();
  useKey("newConversation", () => navigate({ to: "/" }));
  useKey("documents", () => navigate({ to: "/documents" }));
  useKey("decisions", () => navigate({ to: "/decisions" }));
  useKey("memory", () => navigate({ to: "/memory" }));
  useKey("search", () => navigate({ to: "/search" }));
  useKey("operating", () => navigate({ to: "/operating" }));
  useKey("focusQuestion", () => document.querySelector<HTMLElement>("[data-testid=question-input]")?.focus());
  return null;
}
