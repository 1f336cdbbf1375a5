import { useMemo } from "preact/hooks";
import css from "@/administration/Administration.module.css";
import { ChangePanel } from "@/administration/ChangePanel.tsx";
import { ItemFormFrame } from "@/administration/ItemFormFrame.tsx";
import { ItemPage, type ShownItem } from "@/administration/ItemPage.tsx";
import { ReadOnlyNotice } from "@/administration/ReadOnlyNotice.tsx";
import { type ItemForm, useItemForm } from "@/administration/useItemForm.ts";
import { type ContainerItem, containerPath, type DataClass } from "@/api/dataStores.ts";
import type { Verb } from "@/api/tables.ts";
import { ChoiceList } from "@/components/ChoiceList.tsx";
import { Facts } from "@/components/Facts.tsx";
import { Select } from "@/components/Field.tsx";
import { showToast } from "@/components/toasts.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import { buildTableRules, type TableDraft, VERBS } from "./tableRules.ts";

interface Props {
  database: string;
  name: string;
}

const CLASSES: readonly { value: DataClass; label: string }[] = [
  { value: "operational", label: "operational: changes often" },
  { value: "reference", label: "reference: changes rarely" },
];
const EVIDENCE = { value: "evidence", label: "evidence" } as const;
const OPTIONS = (Object.keys(VERBS) as Verb[]).map((value) => ({ value, label: value, note: VERBS[value] }));

/** One table: data class and exposed operations. */
export function TablePage({ database, name }: Props) {
  return (
    <ItemPage<ContainerItem>
      path={containerPath(database, name)}
      name={`${database}/${name}`}
      list={{ page: "tables", title: "All tables" }}
      toTitle={(item) => item.name}
    >
      {(shown) => <Shown {...shown} database={database} />}
    </ItemPage>
  );
}

function Shown({ item, isRemoved, replace, database }: ShownItem<ContainerItem> & { database: string }) {
  const editable = useHasRights("Workspace.DataStore.Manage");
  const rules = useMemo(() => buildTableRules(database, item.name), [database, item.name]);
  const form = useItemForm(
    rules,
    item,
    { dataClass: "operational", expose: [] },
    (saved) => {
      replace(saved);
      showToast(`“${saved.name}” is saved`);
    },
    replace,
  );
  return (
    <>
      {!editable && <ReadOnlyNotice right="Workspace.DataStore.Manage" />}
      <Panel title="Table">
        <Facts
          facts={[
            { label: "Database", value: database },
            { label: "Partition key path", value: <code>{item.partitionKeyPath}</code> },
            { label: "Container", value: item.provisioned ? "exists" : "does not exist in the account" },
          ]}
        />
        <ItemFormFrame form={form} editable={editable} createLabel="Save">
          <Fields form={form} stored={item.dataClass} />
        </ItemFormFrame>
      </Panel>
      <ChangePanel
        isRemoved={isRemoved}
        item={item}
        audited={{ target: "PlatformConfig", entityTypes: ["Container"], entityId: `${database}/${item.name}` }}
      />
    </>
  );
}

function Fields({ form, stored }: { form: ItemForm<ContainerItem, TableDraft>; stored: DataClass }) {
  const { draft, change, message } = form;
  return (
    <>
      <div class={css.fields}>
        <Select
          label="Data class"
          value={draft.dataClass}
          options={stored === "evidence" ? [...CLASSES, EVIDENCE] : CLASSES}
          onChange={(dataClass) => change({ dataClass })}
          hint="Evidence belongs in the audit log: documents can be replaced and deleted"
          error={message("dataClass")}
        />
      </div>
      <ChoiceList
        label="Published operations"
        options={OPTIONS}
        chosen={draft.expose}
        onChange={(expose) => change({ expose: (expose as Verb[]).sort() })}
        hint="Members also need Workspace.Document.Read to read, and Workspace.Document.Write to change documents"
        error={message("expose")}
      />
    </>
  );
}
