import { defineConfig } from "vite";

// Everything is bundled and addressed relative to the page, so that it works under any workspace and loads from nowhere else.
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
