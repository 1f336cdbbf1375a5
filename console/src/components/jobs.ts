// Background jobs of the service: downloads and audit bundles.
import type { Turn } from "./usePolling.ts";

export type JobStatus = "pending" | "running" | "completed" | "failed" | "cancelled";

/** The common properties of background jobs. */
export interface BackgroundJob {
  statusUrl: string;
  status: JobStatus;
  createdAt: string;
  progress: object;
  expiresAt: string;
  error: string | null;
  /** The code with which the error begins, if it has one. */
  errorCode: string | null;
}

/** A file of a job; its link needs no token and expires after minutes. */
export interface JobFile {
  name: string;
  url: string;
  urlExpiresAt: string;
  /** Number of its rows or records. */
  rows: number;
  bytes: number;
  sha256: string;
}

const SOONEST_MS = 1000;
const LATEST_MS = 15_000;
/** Links expire after 15 minutes; the list is reloaded before. */
const LINKS_MS = 10 * 60_000;
const GROWTH = 1.6;

/** Returns the pause until the next fetch: short during progress, longer and longer without it. */
export function choosePause({ data, before, failed, waited }: Turn<readonly BackgroundJob[]>): number {
  if (!failed && !data?.some(isUnfinished)) {
    return LINKS_MS;
  }
  if (!failed && summarizeProgress(data) !== summarizeProgress(before)) {
    return SOONEST_MS;
  }
  return Math.min(Math.max(SOONEST_MS, waited * GROWTH), LATEST_MS);
}

/** Returns the message after a start; a start that repeats one with a lost reply returns the job of the first. */
export function describeStart(noun: string, { status }: Pick<BackgroundJob, "status">): string {
  return status === "completed"
    ? `Your earlier attempt started the ${noun}; it is complete`
    : `The ${noun} was started`;
}

/** Returns the reason of a failure without its code, which is for programs; null without a failure. */
export function describeFailure({ error, errorCode }: BackgroundJob): string | null {
  const prefix = `${errorCode}: `;
  return error?.startsWith(prefix) ? error.slice(prefix.length) : error;
}

/** Tells whether a job may still change. */
export function isUnfinished(job: BackgroundJob): boolean {
  return job.status === "pending" || job.status === "running";
}

/** Tells whether a job failed or was cancelled. */
export function hasFailed({ status }: Pick<BackgroundJob, "status">): boolean {
  return status === "failed" || status === "cancelled";
}

/** Returns the progress of the jobs as a comparable text, without the links, which always change. */
function summarizeProgress(jobs: readonly BackgroundJob[] | undefined): string {
  return JSON.stringify(jobs?.map(({ statusUrl, status, progress }) => [statusUrl, status, progress]));
}
