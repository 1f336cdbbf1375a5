import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Status, type Tone } from "./Badge.tsx";
import { Button } from "./Button.tsx";
import css from "./JobCard.module.css";
import { type BackgroundJob, describeFailure, isUnfinished, type JobStatus } from "./jobs.ts";
import { Notice } from "./Notice.tsx";
import { Time } from "./Time.tsx";
import { VisibleText } from "./VisibleText.tsx";

const TONES: Record<JobStatus, Tone> = {
  pending: "neutral",
  running: "accent",
  completed: "good",
  failed: "bad",
  cancelled: "warn",
};

interface Props {
  job: BackgroundJob;
  title: string;
  /** More about the job, after its title. */
  facts: ComponentChildren;
  /** Progress while it is unfinished. */
  progress: { label: string; done: number; total: number; text: string };
  /** Help after a failure. */
  help: ComponentChildren;
  /** Totals after completion. */
  totals: string;
  /** Time of the start, null before it; absent for jobs that start when they are created. */
  startedAt?: string | null;
  onCancel: () => Promise<void>;
  /** Its files. */
  children: ComponentChildren;
}

/** A background job: its progress, its error and its files. */
export function JobCard({ job, title, facts, progress, help, totals, startedAt, onCancel, children }: Props) {
  const [busy, setBusy] = useState(false);
  const unfinished = isUnfinished(job);
  const failure = describeFailure(job);
  const cancel = async () => {
    setBusy(true);
    await onCancel();
    setBusy(false);
  };
  return (
    <article class={css.job} aria-label={`${title}, ${job.status}`}>
      <header>
        <Status tone={TONES[job.status]}>{job.status}</Status>
        <h3>
          <VisibleText text={title} isName />
        </h3>
        {facts}
        {unfinished && (
          <Button kind="quiet" icon="close" busy={busy} onClick={() => void cancel()}>
            Cancel
          </Button>
        )}
      </header>
      {unfinished && (
        <div class={css.progress}>
          <progress aria-label={progress.label} max={Math.max(1, progress.total)} value={progress.done} />
          <span>{progress.text}</span>
        </div>
      )}
      {failure && (
        <Notice kind="bad" title={failure}>
          <p>{help}</p>
        </Notice>
      )}
      {children}
      <footer>
        {startedAt === null ? "created" : "started"} <Time at={startedAt ?? job.createdAt} />
        {job.status === "completed" && ` · ${totals}`}
        {!unfinished && (
          <>
            {" · available until "}
            <Time at={job.expiresAt} />
          </>
        )}
      </footer>
    </article>
  );
}
