import type { WarmQuery } from "@/api/queries.ts";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { ParameterTable } from "./Definition.tsx";
import css from "./Facts.module.css";

/** The KQL and the parameters of a draft, which the signature of a decision covers. */
export function DecidedText({ query }: { query: WarmQuery }) {
  return (
    <>
      <CodeBlock code={query.kql.trimEnd()} label={`KQL of ${query.name}`} />
      <section class={css.stack} aria-label="Parameters of the draft">
        <h3>Parameters</h3>
        <ParameterTable parameters={query.parameters} />
      </section>
    </>
  );
}
