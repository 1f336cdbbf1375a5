import { defineConfig } from "vite";

// Everything is bundled and has an address relative to the page. It works under any workspace and loads nothing from other origins.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../../static/graphiql",
    assetsDir: "graphiql",
    emptyOutDir: true,
    chunkSizeWarningLimit: 8000,
  },
  worker: { format: "es" },
});
