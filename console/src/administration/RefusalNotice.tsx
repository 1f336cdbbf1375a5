import { isOutdated } from "@/api/problem.ts";
import { Button } from "@/components/Button.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import css from "./Administration.module.css";
import { explainRefusal } from "./refusals.ts";

interface Props {
  error: unknown;
  /** Shows the current version after a conflict. */
  onReload?: () => void;
}

/** A rejected change: the reason in plain words, the items that prevent it as links, and the service's code. */
export function RefusalNotice({ error, onReload }: Props) {
  const explained = explainRefusal(error);
  if (!explained) {
    return <ErrorNotice error={error} />;
  }
  const { title, advice, blockers, rights } = explained;
  return (
    <ErrorNotice error={error} instead={title}>
      <p>{advice}</p>
      {(blockers.length > 0 || rights.length > 0) && (
        <ul class={css.names}>
          {blockers.map(({ name, href }) => (
            <li key={href}>
              <a href={href}>{name}</a>
            </li>
          ))}
          {rights.map((right) => (
            <li key={right}>
              <code>{right}</code>
            </li>
          ))}
        </ul>
      )}
      {onReload && isOutdated(error) && (
        <div>
          <Button icon="refresh" onClick={onReload}>
            Reload
          </Button>
        </div>
      )}
    </ErrorNotice>
  );
}
