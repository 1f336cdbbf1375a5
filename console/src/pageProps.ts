import type { Route } from "./router/route.ts";

/** Properties of every page component. */
export interface PageProps {
  route: Route;
}
