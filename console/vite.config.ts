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
    rolldownOptions: {
      output: {
        // Code that several pages use is one file; otherwise there are 60 more files, which together are larger.
        codeSplitting: { groups: [{ name: "shared", minShareCount: 3, test: /console\/src\/(?!pages)/ }] },
      },
    },
  },
  test: {
    environment: "happy-dom",
    include: ["tests/**/*.test.{ts,tsx}"],
    // A document for each of the files takes five times as long as all tests, which clean up after themselves.
    isolate: false,
    restoreMocks: true,
    unstubGlobals: true,
  },
});
