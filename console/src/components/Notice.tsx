import type { ComponentChildren } from "preact";
import { ApiError } from "@/api/problem.ts";
import { Button } from "./Button.tsx";
import { joinClasses } from "./classes.ts";
import { Icon } from "./Icon.tsx";
import css from "./Notice.module.css";

interface Props {
  /** `alarm` for data that nobody may rely on. */
  kind?: "info" | "good" | "warn" | "bad" | "alarm";
  title?: string;
  children?: ComponentChildren;
}

const ICONS = { info: "info", good: "check", warn: "warning", bad: "error", alarm: "warning" } as const;

/** A message about the page's content. */
export function Notice({ kind = "info", title, children }: Props) {
  return (
    <div class={joinClasses(css.notice, css[kind])} role={kind === "bad" || kind === "alarm" ? "alert" : "status"}>
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
  /** More about the error, such as the next step. */
  children?: ComponentChildren;
}

/** An error: the service's message, the invalid fields, the code, and the request's id. */
export function ErrorNotice({ error, onRetry, instead, children }: ErrorProps) {
  if (!(error instanceof ApiError)) {
    return <Notice kind="bad" title={error instanceof Error ? error.message : String(error)} />;
  }
  return (
    <Notice kind="bad" title={instead ?? error.detail}>
      {children}
      {error.errors.length > 1 && (
        <ul class={css.fields}>
          {error.errors.map((failing) => (
            <li key={`${failing.field} ${failing.message}`}>
              <code>{failing.field}</code>: {failing.message}
            </li>
          ))}
        </ul>
      )}
      {error.status > 0 && <Reference error={error} />}
      {onRetry && (
        <Button icon="refresh" onClick={onRetry}>
          Retry
        </Button>
      )}
    </Notice>
  );
}

/** The code and request of a reply, for a question to the operator. */
function Reference({ error }: { error: ApiError }) {
  return (
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
  );
}
