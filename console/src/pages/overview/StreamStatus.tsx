import { ApiError } from "@/api/index.ts";
import { Status } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { formatTime } from "@/format.ts";
import type { Live } from "@/live/live.ts";
import { type Drop, FELL_BEHIND, TOKEN_EXPIRED } from "@/live/stream.ts";
import css from "./Live.module.css";

/** Older messages belong to the replay at the start of a stream. */
const CATCHING_UP_MS = 15_000;

/** The stream's state in one word. */
export function StreamStatus({ live }: { live: Live }) {
  return <div role="status">{describeState(live)}</div>;
}

function describeState(live: Live) {
  const { state, pausedAt, history } = live;
  if (pausedAt !== undefined) {
    return <Status tone="warn">paused at {formatClock(pausedAt)}</Status>;
  }
  switch (state.kind) {
    case "open":
      return history.newest > 0 && live.now() - history.newest > CATCHING_UP_MS ? (
        <Status tone="accent">open; newest message at {formatClock(history.newest)}</Status>
      ) : (
        <Status tone="good">live</Status>
      );
    case "connecting":
      return <Status tone="accent">connecting</Status>;
    case "waiting":
      return <Status tone="warn">interrupted</Status>;
    case "ended":
      return <Status tone="bad">closed</Status>;
  }
}

/** An error of the stream, and the next step. */
export function StreamNotice({ live }: { live: Live }) {
  const { state, drop } = live;
  if (state.kind === "ended") {
    return <ErrorNotice error={state.error} onRetry={() => live.retry()} />;
  }
  if (state.kind === "waiting") {
    const seconds = Math.max(0, Math.ceil((state.until - Date.now()) / 1000));
    return (
      <Notice kind="warn" title={drop ? explainDrop(drop) : "The live stream did not open."}>
        {state.error instanceof ApiError && (
          <p>
            {state.error.detail} <code>{state.error.code}</code>
            {state.error.requestId && (
              <>
                {" · request "}
                <code>{state.error.requestId}</code>
              </>
            )}
          </p>
        )}
        <p>Next attempt in {seconds} s; missed messages are fetched afterwards.</p>
        <Button icon="refresh" onClick={() => live.retry()}>
          Retry now
        </Button>
      </Notice>
    );
  }
  return drop && state.kind === "open" ? (
    <div class={css.drop}>
      <Notice kind="info" title={explainDrop(drop)}>
        <p>The stream is open again, and missed messages are fetched.</p>
        <Button onClick={() => live.dismissDrop()}>Dismiss</Button>
      </Notice>
    </div>
  ) : null;
}

function explainDrop({ code, reason, at }: Drop): string {
  switch (code) {
    case FELL_BEHIND:
      return `This page fell behind, and the service closed its stream at ${formatClock(at)} (1013). Choose fewer connections.`;
    case TOKEN_EXPIRED:
      return `The token of the stream expired or was revoked at ${formatClock(at)} (4401).`;
    case 1001:
      return `The service stopped at ${formatClock(at)} (1001).`;
    case 1011:
      return `The service closed the live stream at ${formatClock(at)} (1011). ${reason}`.trim();
    default:
      return `The connection to the live stream was lost at ${formatClock(at)} (${code}).`;
  }
}

function formatClock(at: number): string {
  return formatTime(at).slice(11);
}
