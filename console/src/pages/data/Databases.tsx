import { useState } from "preact/hooks";
import type { Table } from "@/api/tables.ts";
import { Button } from "@/components/Button.tsx";
import { Field } from "@/components/Field.tsx";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { recall, remember } from "@/session/tabMemory.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Data.module.css";

const OPENED = "databases";

interface Props {
  tables: readonly Table[];
  selected: string | undefined;
}

/** The databases of the OpenAPI document, and those that the reader opened by lookup. */
export function Databases({ tables, selected }: Props) {
  const lists = useHasRights("Workspace.DataStore.Read");
  const [text, setText] = useState("");
  const stores = new Map(tables.map(({ database, store }) => [database, store]));
  const names = [...new Set([...stores.keys(), ...recallOpened(), ...(selected ? [selected] : [])])].sort();
  const current = selected ?? tables[0]?.database;
  const open = (event: Event) => {
    event.preventDefault();
    const name = text.trim();
    if (name !== "") {
      remember(OPENED, [...new Set([...recallOpened(), name])]);
      setText("");
      navigate(buildHref("data", [name]));
    }
  };
  return (
    <Panel title="Databases">
      <nav aria-label="Databases" class={css.databases}>
        {names.map((name) => (
          <a key={name} href={buildHref("data", [name])} aria-current={name === current ? "true" : undefined}>
            <span>{name}</span>
            <small>{stores.get(name) ?? ""}</small>
          </a>
        ))}
        {names.length === 0 && <p class={css.note}>This token has no access to a published table.</p>}
      </nav>
      {lists && (
        <form class={css.open} onSubmit={open}>
          <Field
            label="Another database"
            value={text}
            mono
            hint="Its ID: the lookup in the workspace document"
            onInput={setText}
          />
          <Button type="submit" disabled={text.trim() === ""}>
            Open
          </Button>
        </form>
      )}
    </Panel>
  );
}

function recallOpened(): readonly string[] {
  const found = recall(OPENED);
  return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
}
