import { PAGES } from "@/pages.ts";
import { parseHash } from "@/router/route.ts";

/** Starts to load the module of the addressed page, so that it arrives while the session is restored. */
export function preloadPage(hash: string): void {
  const { page } = parseHash(hash);
  const entry = page === "" ? PAGES[0] : PAGES.find((each) => each.path === page);
  // The page itself shows the failure when it is opened.
  entry?.load().catch(() => undefined);
}
