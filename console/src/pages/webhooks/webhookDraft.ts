import type { FormRules } from "@/administration/useItemForm.ts";
import type { Severity } from "@/api/alerts.ts";
import {
  type EventFilter,
  type MessageFormat,
  type Webhook,
  type WebhookDefinition,
  webhookPath,
} from "@/api/webhooks.ts";

/** The form of a webhook; an empty list of a filter restricts nothing. */
export interface WebhookDraft {
  /** Empty for a new webhook; the service chooses the id. */
  id: string;
  url: string;
  format: MessageFormat;
  description: string;
  eventTypes: string[];
  surfaces: string[];
  connections: string[];
  severities: string[];
  enabled: boolean;
}

export const NEW_WEBHOOK: WebhookDraft = {
  id: "",
  url: "",
  format: "standard",
  description: "",
  eventTypes: ["alert.firing", "alert.resolved"],
  surfaces: [],
  connections: [],
  severities: [],
  enabled: true,
};

export const WEBHOOK_FORM: FormRules<Webhook, WebhookDraft> = {
  noun: "webhook",
  labels: {
    id: "ID",
    url: "URL",
    format: "Format",
    description: "Description",
    eventTypes: "Events",
    surfaces: "Surfaces",
    connections: "Connections",
    severities: "Severities",
    enabled: "Enabled",
  },
  path: ({ id }) => webhookPath(id),
  toDraft: ({ id, url, format, description, eventTypes, filter, enabled }) => ({
    id,
    url,
    format,
    description: description ?? "",
    eventTypes,
    surfaces: filter.surfaces ?? [],
    connections: filter.connections ?? [],
    severities: filter.severities ?? [],
    enabled,
  }),
  toBody: toDefinition,
  check: (draft) => ({
    url: /^https?:\/\/./i.test(draft.url.trim()) ? undefined : "must begin with https://",
    eventTypes: draft.eventTypes.length === 0 ? "Choose at least one event." : undefined,
  }),
};

/** Returns the definition of a draft. */
export function toDefinition(draft: WebhookDraft): WebhookDefinition {
  const { surfaces, connections, severities } = draft;
  const filter: EventFilter = {
    ...(surfaces.length > 0 ? { surfaces } : {}),
    ...(connections.length > 0 ? { connections } : {}),
    ...(severities.length > 0 ? { severities: severities as Severity[] } : {}),
  };
  return {
    url: draft.url.trim(),
    format: draft.format,
    description: draft.description === "" ? null : draft.description,
    eventTypes: draft.eventTypes,
    filter,
    enabled: draft.enabled,
  };
}
