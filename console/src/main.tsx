import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Problem } from "./api/client";
import { startLanguage } from "./i18n";
import { router } from "./router";
import { cleanCopies } from "./shell/copies";
import { followBuilds } from "./shell/renewal";
import { startTheme } from "./shell/theme";
import "./style/base.css";
import "./style/parts.css";
import "./style/shell.css";
import "./style/conversation.css";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => failures < 2 && (!(error instanceof Problem) || error.retryable),
    },
  },
});

startTheme();
followBuilds();
cleanCopies();
await startLanguage();
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
