import type { ComponentChildren } from "preact";
import { ApiError } from "@/api/problem.ts";
import { Button } from "./Button.tsx";
import { joinClasses } from "./classes.ts";
import { Icon } from "./Icon.tsx";
import css from "./Notice.module.css";

interface Props {
  kind?: "info" | "good" | "warn" | "bad";
  title?: string;
  children?: ComponentChildren;
}

const ICONS = { info: "info", good: "check", warn: "warning", bad: "error" } as const;

/** Something to know about what is on the page. */
export function Notice({ kind = "info", title, children }: Props) {
  return (
    <div class={joinClasses(css.notice, css[kind])} role={kind === "bad" ? "alert" : "status"}>
      <Icon name={ICONS[kind]} />
      <div class={css.text}>
        {title && <strong>{title}</strong>}
        {children}
      </div>
    </div>
  );
}

interface ErrorProps {
  /** Whatever was thrown. */
  error: unknown;
  /** Shows a button that tries again. */
  onRetry?: () => void;
  /** Stands for what the service said where that stands elsewhere already. */
  instead?: string | undefined;
}

/** What went wrong: what the service said, the fields that fail, the code, and the request's id to ask about. */
export function ErrorNotice({ error, onRetry, instead }: ErrorProps) {
  if (!(error instanceof ApiError)) {
    return <Notice kind="bad" title={error instanceof Error ? error.message : String(error)} />;
  }
  return (
    <Notice kind="bad" title={instead ?? error.detail}>
      {error.errors.length > 1 && (
        <ul class={css.fields}>
          {error.errors.map((failing) => (
            <li key={`${failing.field} ${failing.message}`}>
              <code>{failing.field}</code>: {failing.message}
            </li>
          ))}
        </ul>
      )}
      <p class={css.reference}>
        <code>{error.code}</code>
        {error.requestId && (
          <>
            {" · request "}
            <code>{error.requestId}</code>
          </>
        )}
        {error.retryAfterSeconds !== undefined && ` · try again in ${error.retryAfterSeconds} s`}
      </p>
      {onRetry && (
        <Button icon="refresh" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Notice>
  );
}
