import type { Severity } from "./alerts.ts";
import { type Client, formatPath } from "./client.ts";
import { createIdempotencyKey } from "./idempotency.ts";
import type { StoredItem } from "./items.ts";

export type MessageFormat = "standard" | "teams" | "slack";
export type DeliveryStatus = "pending" | "delivered" | "failed";

/** Restrictions on the events of a webhook; a missing property restricts nothing. */
export interface EventFilter {
  surfaces?: string[];
  connections?: string[];
  severities?: Severity[];
}

/** The properties of a webhook that people define. */
export interface WebhookDefinition {
  url: string;
  format: MessageFormat;
  description: string | null;
  eventTypes: string[];
  filter: EventFilter;
  enabled: boolean;
}

export interface Webhook extends WebhookDefinition, StoredItem {
  id: string;
  createdAt: string;
  createdBy: string;
  /** Why the service disabled it; else null. */
  disabledReason: string | null;
}

/** A webhook with its newest secret, which no other reply contains. */
export interface WebhookWithSecret extends Webhook {
  secret: string;
}

export interface EventType {
  type: string;
  description: string;
}

/** One attempt to send a delivery; `reply` is the start of the reply's body. */
export interface Attempt {
  at: string;
  httpStatus: number | null;
  error: string | null;
  durationMs: number;
  reply: string;
}

/** An event on its way to a webhook; `id` is the header `webhook-id`, and `event` is the body in the format `standard`. */
export interface Delivery {
  id: string;
  webhookId: string;
  eventType: string;
  status: DeliveryStatus;
  attempts: Attempt[];
  nextAttemptAt: string | null;
  createdAt: string;
  event: Record<string, unknown>;
}

export interface DeliveryPage {
  deliveries: Delivery[];
  /** Null on the last page. */
  cursor: string | null;
}

const WEBHOOKS = "/oi-api/webhooks";

/** Returns the webhooks, oldest first; this and every other call needs Workspace.Webhook.Manage. */
export async function fetchWebhooks(api: Client, signal?: AbortSignal): Promise<Webhook[]> {
  return (await api.get<{ webhooks: Webhook[] }>(WEBHOOKS, signal ? { signal } : {})).webhooks;
}

export async function fetchEventTypes(api: Client, signal?: AbortSignal): Promise<EventType[]> {
  return (await api.get<{ eventTypes: EventType[] }>(`${WEBHOOKS}/event-types`, signal ? { signal } : {})).eventTypes;
}

export function webhookPath(id: string): string {
  return formatPath`/oi-api/webhooks/${id}`;
}

/** Creates a webhook. A repeat with the same idempotency key returns the same webhook with its secret. */
export function createWebhook(
  api: Client,
  definition: WebhookDefinition,
  idempotencyKey: string,
): Promise<WebhookWithSecret> {
  return api.post<WebhookWithSecret>(WEBHOOKS, definition, { headers: { "Idempotency-Key": idempotencyKey } });
}

export function rotateSecret(api: Client, id: string, idempotencyKey: string): Promise<WebhookWithSecret> {
  const headers = { "Idempotency-Key": idempotencyKey };
  return api.post<WebhookWithSecret>(`${webhookPath(id)}/rotate-secret`, undefined, { headers });
}

export function sendTest(api: Client, id: string): Promise<Delivery> {
  const headers = { "Idempotency-Key": createIdempotencyKey() };
  return api.post<Delivery>(`${webhookPath(id)}/test`, undefined, { headers });
}

/** Returns a page of the deliveries of the last 30 days, newest first. */
export function fetchDeliveries(
  api: Client,
  id: string,
  query: { status?: string; limit?: number; cursor?: string | undefined },
  signal?: AbortSignal,
): Promise<DeliveryPage> {
  return api.get<DeliveryPage>(`${webhookPath(id)}/deliveries`, { query, ...(signal ? { signal } : {}) });
}

export function retryDelivery(api: Client, delivery: Delivery): Promise<Delivery> {
  const path = formatPath`/oi-api/webhooks/${delivery.webhookId}/deliveries/${delivery.id}/retry`;
  return api.post<Delivery>(path, undefined, { headers: { "Idempotency-Key": createIdempotencyKey() } });
}
