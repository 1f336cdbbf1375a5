// Copies the files of the browser pages into the folder that the service serves, those of libraries from node_modules.
import { cp, mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const served = join(here, "..", "static");

const copies = {
  explorer: [
    ["explorer/index.html", "index.html"],
    ["explorer/explorer.js", "explorer.js"],
    ["explorer/explorer.css", "explorer.css"],
    ["node_modules/swagger-ui-dist/swagger-ui-bundle.js", "swagger-ui-bundle.js"],
    ["node_modules/swagger-ui-dist/swagger-ui.css", "swagger-ui.css"],
    ["node_modules/swagger-ui-dist/LICENSE", "swagger-ui.LICENSE.txt"],
  ],
};

for (const [page, files] of Object.entries(copies)) {
  const folder = join(served, page);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const [from, to] of files) {
    await cp(join(here, from), join(folder, to));
  }
}
