import type { WarmQuery } from "@/api/queries.ts";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { VisibleText } from "@/components/VisibleText.tsx";
import { Panel } from "@/shell/Page.tsx";
import { formatDefault, isRequired } from "../run/parameters.ts";
import css from "./Facts.module.css";

/** The definition of a query: KQL, parameters and columns. */
export function Definition({ query }: { query: WarmQuery }) {
  const columns = query.schema?.columns ?? [];
  return (
    <div class={css.stack}>
      <Panel title="KQL">
        <CodeBlock code={query.kql.trimEnd()} label={`KQL of ${query.name}`} />
      </Panel>
      <div class={css.pair}>
        <Panel title="Parameters">
          <ParameterTable parameters={query.parameters} />
        </Panel>
        <Panel title="Columns">
          {columns.length === 0 ? (
            <p>The columns are known after the first run.</p>
          ) : (
            <Rows heads={["Name", "Type"]} rows={columns.map((each) => [each.name, each.type])} />
          )}
        </Panel>
      </div>
    </div>
  );
}

/** The parameters of a query with their types and defaults. */
export function ParameterTable({ parameters }: Pick<WarmQuery, "parameters">) {
  if (parameters.length === 0) {
    return <p>None besides the time range and the row limit.</p>;
  }
  return (
    <Rows
      heads={["Name", "Type", "Default"]}
      rows={parameters.map((each) => [each.name, each.type, isRequired(each) ? "required" : describeDefault(each)])}
    />
  );
}

function describeDefault(parameter: WarmQuery["parameters"][number]): string {
  return parameter.default === null ? "null" : formatDefault(parameter) || "empty";
}

function Rows({ heads, rows }: { heads: readonly string[]; rows: readonly (readonly string[])[] }) {
  return (
    <table class={css.table}>
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, ...cells]) => (
          <tr key={name}>
            <th scope="row">
              <code>{name}</code>
            </th>
            {cells.map((cell, index) => (
              <td key={heads[index]}>
                <VisibleText text={cell} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
