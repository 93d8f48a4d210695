import { cpSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = dirname(fileURLToPath(import.meta.url));
const outDir = join(here, "../services/gateway/console_dist");

/** What pdf.js reads beside its code: character maps, fonts of the standard, and decoders of pictures without WebAssembly, which the policy forbids. */
const pdfData = {
  name: "pdf-data",
  writeBundle() {
    for (const folder of ["cmaps", "standard_fonts", "wasm"]) {
      const filter = (path) => !path.endsWith(".wasm");
      cpSync(join(here, "node_modules/pdfjs-dist", folder), join(outDir, "pdf", folder), { recursive: true, filter });
    }
  },
};

const compressed = {
  name: "compressed",
  closeBundle() {
    for (const name of readdirSync(outDir, { recursive: true })) {
      const path = join(outDir, name);
      if (!/\.(js|mjs|css|svg|json)$/.test(name) || statSync(path).size < 1000) continue;
      writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
    }
  },
};

export default defineConfig({
  base: "/console/",
  plugins: [react(), pdfData, compressed],
  server: { proxy: { "/v1": "http://127.0.0.1:8080", "/readyz": "http://127.0.0.1:8080", "/oidc": "http://127.0.0.1:8080", "/guests": "http://127.0.0.1:8080", "/samples": "http://127.0.0.1:8080" } },
  build: {
    outDir,
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
    rollupOptions: { input: { index: join(here, "index.html"), diagram: join(here, "diagram.html") } },
  },
});
