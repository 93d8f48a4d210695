// The paths of the console. Each page is a folder in pages/ and a chunk of its own; the gateway knows the first words of the paths.

import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Broken } from "./shell/Broken";
import { Shell } from "./shell/Shell";
import { NotFound } from "./shell/NotFound";
import { NewConversation } from "./pages/conversation/NewConversation";

/** In words by which the router does not load the page anew at once: renewal.ts looks first at what would be lost. */
function lacking(error: Error): never {
  throw new Error(`Unable to preload a page: ${error.message}`);
}

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
  component: lazyRouteComponent(() => import("./pages/conversation/Conversation").catch(lacking), "Conversation"),
  validateSearch: (search: Record<string, unknown>): ThreadSearch => (typeof search.answer === "string" ? { answer: search.answer } : {}),
});

export interface PassageSearch {
  /** The first of the passage's characters that a citation means, and one past the last. */
  from?: number;
  to?: number;
}

const passage = createRoute({
  getParentRoute: () => root,
  path: "/passages/$chunkId",
  component: lazyRouteComponent(() => import("./passage/PassagePage").catch(lacking), "PassagePage"),
  validateSearch: ({ from, to }: Record<string, unknown>): PassageSearch =>
    typeof from === "number" && typeof to === "number" ? { from, to } : {},
});

const documents = createRoute({
  getParentRoute: () => root,
  path: "/documents",
  component: lazyRouteComponent(() => import("./pages/documents/Documents").catch(lacking), "Documents"),
  validateSearch: (search: Record<string, unknown>): { collection?: string } =>
    typeof search.collection === "string" ? { collection: search.collection } : {},
});

const sources = createRoute({
  getParentRoute: () => root,
  path: "/sources",
  component: lazyRouteComponent(() => import("./pages/sources/Sources").catch(lacking), "Sources"),
});

const connections = createRoute({
  getParentRoute: () => root,
  path: "/connections",
  component: lazyRouteComponent(() => import("./pages/connections/Connections").catch(lacking), "Connections"),
});

const decisions = createRoute({
  getParentRoute: () => root,
  path: "/decisions",
  component: lazyRouteComponent(() => import("./pages/decisions/Decisions").catch(lacking), "Decisions"),
});

const memory = createRoute({
  getParentRoute: () => root,
  path: "/memory",
  component: lazyRouteComponent(() => import("./pages/memory/Memory").catch(lacking), "Memory"),
});

const search = createRoute({
  getParentRoute: () => root,
  path: "/search",
  component: lazyRouteComponent(() => import("./pages/search/Search").catch(lacking), "Search"),
});

const operating = createRoute({
  getParentRoute: () => root,
  path: "/operating",
  component: lazyRouteComponent(() => import("./pages/operating/Operating").catch(lacking), "Operating"),
});

const login = createRoute({
  getParentRoute: () => root,
  path: "/tool-servers/callback",
  component: lazyRouteComponent(() => import("./pages/login/ToolServerLogin").catch(lacking), "ToolServerLogin"),
});

export const router = createRouter({
  routeTree: root.addChildren([home, login, conversation, passage, documents, sources, connections, decisions, memory, search, operating]),
  defaultPreload: "intent",
  defaultErrorComponent: Broken,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
