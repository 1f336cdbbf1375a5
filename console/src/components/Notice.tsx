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

/** A message about the page's content. */
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
  /** The thrown error. */
  error: unknown;
  /** Shows a retry button. */
  onRetry?: () => void;
  /** Text instead of the service's message, if the page shows that elsewhere. */
  instead?: string | undefined;
}

/** An error: the service's message, the invalid fields, the code, and the request's id. */
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
          Retry
        </Button>
      )}
    </Notice>
  );
}
