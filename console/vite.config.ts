import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Everything is bundled; names below assets/ hold a hash of their content and are served as never changing.
export default defineConfig({
  base: "/console/",
  resolve: { alias: { "@": fileURLToPath(new URL("src", import.meta.url)) } },
  build: {
    outDir: "../static/console",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: "licenses.txt" },
    reportCompressedSize: false,
  },
  test: { environment: "happy-dom", include: ["tests/**/*.test.{ts,tsx}"] },
});
