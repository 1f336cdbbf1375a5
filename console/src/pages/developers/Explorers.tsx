import { formatPath } from "@/api/index.ts";
import css from "./Developers.module.css";

/** Pages of the service where calls are tried out. They are pages of their own and ask for a token. */
export function Explorers({ workspace }: { workspace: string }) {
  return (
    <nav class={css.cards} aria-label="Where calls are tried out">
      <a class={css.card} href="/oi-api/explorer">
        <strong>API Explorer</strong>
        <span>Every REST operation that your token may call, approved queries and published tables among them.</span>
      </a>
      <a class={css.card} href={formatPath`/v1/${workspace}/graphiql`}>
        <strong>GraphiQL</strong>
        <span>The catalog as a graph: connections, surfaces and queries, with completion from the schema.</span>
      </a>
    </nav>
  );
}
