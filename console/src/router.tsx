// The paths of the console. Each page is a folder in pages/ and a chunk of its own; the gateway knows the first words of the paths.

import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Broken } from "./shell/Broken";
import { Shell } from "./shell/Shell";
import { NotFound } from "./shell/NotFound";
import { NewConversation } from "./pages/conversation/NewConversation";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

export interface NewSearch {
  question?: string;
}

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: NewConversation,
  validateSearch: (search: Record<string, unknown>): NewSearch =>
    typeof search.question === "string" ? { question: search.question } : {},
});

export interface ThreadSearch {
  /** The run of the answer that a link leads to. */
  answer?: string;
}

const conversation = createRoute({
  getParentRoute: () => root,
  path: "/conversations/$threadId",
  component: lazyRouteComponent(() => import("./pages/conversation/Conversation"), "Conversation"),
  validateSearch: (search: Record<string, unknown>): ThreadSearch => (typeof search.answer === "string" ? { answer: search.answer } : {}),
});

const documents = createRoute({
  getParentRoute: () => root,
  path: "/documents",
  component: lazyRouteComponent(() => import("./pages/documents/Documents"), "Documents"),
  validateSearch: (search: Record<string, unknown>): { collection?: string } =>
    typeof search.collection === "string" ? { collection: search.collection } : {},
});

const sources = createRoute({
  getParentRoute: () => root,
  path: "/sources",
  component: lazyRouteComponent(() => import("./pages/sources/Sources"), "Sources"),
});

const decisions = createRoute({
  getParentRoute: () => root,
  path: "/decisions",
  component: lazyRouteComponent(() => import("./pages/decisions/Decisions"), "Decisions"),
});

const memory = createRoute({
  getParentRoute: () => root,
  path: "/memory",
  component: lazyRouteComponent(() => import("./pages/memory/Memory"), "Memory"),
});

const search = createRoute({
  getParentRoute: () => root,
  path: "/search",
  component: lazyRouteComponent(() => import("./pages/search/Search"), "Search"),
});

const operating = createRoute({
  getParentRoute: () => root,
  path: "/operating",
  component: lazyRouteComponent(() => import("./pages/operating/Operating"), "Operating"),
});

const login = createRoute({
  getParentRoute: () => root,
  path: "/tool-servers/callback",
  component: lazyRouteComponent(() => import("./pages/login/ToolServerLogin"), "ToolServerLogin"),
});

export const router = createRouter({
  routeTree: root.addChildren([home, login, conversation, documents, sources, decisions, memory, search, operating]),
  defaultPreload: "intent",
  defaultErrorComponent: Broken,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
