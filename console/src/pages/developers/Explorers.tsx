import { formatPath } from "@/api/index.ts";
import css from "./Developers.module.css";

/** Links to the API Explorer and GraphiQL, which are separate pages and require a token. */
export function Explorers({ workspace }: { workspace: string }) {
  return (
    <nav class={css.cards} aria-label="Try calls">
      <a class={css.card} href="/oi-api/explorer">
        <strong>API Explorer</strong>
        <span>Every REST operation that your token permits, with approved queries and published tables.</span>
      </a>
      <a class={css.card} href={formatPath`/v1/${workspace}/graphiql`}>
        <strong>GraphiQL</strong>
        <span>The catalog as a graph: connections, surfaces and queries, with completion from the schema.</span>
      </a>
    </nav>
  );
}
