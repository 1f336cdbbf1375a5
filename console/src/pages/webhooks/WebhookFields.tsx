import css from "@/administration/Administration.module.css";
import type { ItemForm } from "@/administration/useItemForm.ts";
import { fetchConnectionItems } from "@/api/connections.ts";
import { api } from "@/api/index.ts";
import { fetchSurfaceItems } from "@/api/surfaces.ts";
import { fetchEventTypes, type MessageFormat, type Webhook } from "@/api/webhooks.ts";
import { ChoiceList } from "@/components/ChoiceList.tsx";
import { Checkbox, Field, Select } from "@/components/Field.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import { useHasRights } from "@/session/hooks.ts";
import type { WebhookDraft } from "./webhookDraft.ts";

interface Props {
  form: Pick<ItemForm<Webhook, WebhookDraft>, "draft" | "change" | "message">;
}

const FORMATS: readonly { value: MessageFormat; label: string }[] = [
  { value: "standard", label: "Standard: JSON for a program" },
  { value: "teams", label: "Teams: a card in a channel" },
  { value: "slack", label: "Slack: a message in a channel" },
];
const SEVERITIES = ["info", "warning", "critical"].map((value) => ({ value, label: value }));

/** The fields of a webhook. */
export function WebhookFields({ form }: Props) {
  const { draft, change, message } = form;
  const readsCatalog = useHasRights("Workspace.Catalog.Read");
  return (
    <>
      <div class={css.fields}>
        <Field
          label="URL"
          hint="begins with https://; on the public internet, or in a network that the operator allows"
          value={draft.url}
          onInput={(url) => change({ url })}
          error={message("url")}
        />
        <Select
          label="Format"
          value={draft.format}
          options={FORMATS}
          onChange={(format) => change({ format })}
          error={message("format")}
        />
        <Field
          label="Description"
          hint="optional: who or what receives the events"
          value={draft.description}
          onInput={(description) => change({ description })}
          error={message("description")}
        />
      </div>
      <Checkbox label="Enabled: events are sent" checked={draft.enabled} onChange={(enabled) => change({ enabled })} />
      <EventTypeChoice form={form} />
      <ChoiceList
        label="Severities"
        options={SEVERITIES}
        chosen={draft.severities}
        onChange={(severities) => change({ severities })}
        error={message("filter.severities")}
        hint="Only events of these severities. If none is selected, all events are sent"
      />
      {readsCatalog && <CatalogFilters form={form} />}
    </>
  );
}

function EventTypeChoice({ form }: Props) {
  const { draft, change, message } = form;
  const resource = useResource((signal) => fetchEventTypes(api, signal), []);
  return (
    <Loaded resource={resource} rows={6}>
      {(types) => (
        <ChoiceList
          label="Events"
          options={types
            .filter(({ type }) => type !== "webhook.test")
            .map(({ type, description }) => ({ value: type, label: type, note: description }))}
          chosen={draft.eventTypes}
          onChange={(eventTypes) => change({ eventTypes })}
          error={message("eventTypes")}
        />
      )}
    </Loaded>
  );
}

/** Filters by items of the catalog. */
function CatalogFilters({ form }: Props) {
  const { draft, change, message } = form;
  const surfaces = useResource((signal) => fetchSurfaceItems(api, signal), []);
  const connections = useResource((signal) => fetchConnectionItems(api, signal), []);
  return (
    <>
      <Loaded resource={surfaces} rows={3}>
        {(items) => (
          <ChoiceList
            label="Surfaces"
            options={listOptions(items, draft.surfaces)}
            chosen={draft.surfaces}
            onChange={(chosen) => change({ surfaces: chosen })}
            error={message("filter.surfaces")}
            hint="Only events of these surfaces. If none is selected, all events are sent"
            empty="The workspace has no surfaces yet."
          />
        )}
      </Loaded>
      <Loaded resource={connections} rows={3}>
        {(items) => (
          <ChoiceList
            label="Connections"
            options={listOptions(items, draft.connections)}
            chosen={draft.connections}
            onChange={(chosen) => change({ connections: chosen })}
            error={message("filter.connections")}
            hint="Only events of these connections. If none is selected, all events are sent"
            empty="The workspace has no connections yet."
          />
        )}
      </Loaded>
    </>
  );
}

/** Returns the options of a filter; chosen items that no longer exist remain, so that they can be removed. */
function listOptions(items: readonly { lookup: string; name: string }[], chosen: readonly string[]) {
  const known = items.map(({ lookup, name }) => ({ value: lookup, label: name, note: lookup }));
  const missing = chosen.filter((lookup) => items.every((item) => item.lookup !== lookup));
  return [...known, ...missing.map((lookup) => ({ value: lookup, label: lookup, note: "removed" }))];
}
