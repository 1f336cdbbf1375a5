import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Amendment, isTransition, queryAmendments } from "@/api/amendments.ts";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import { DamagedNotice } from "./AlteredNotice.tsx";
import { AmendmentCard } from "./AmendmentCard.tsx";
import css from "./Amendments.module.css";
import { Decision } from "./Decision.tsx";
import { type Entry, findLastSequence, toEntry } from "./entries.ts";

const PAGE = 50;

interface Props {
  scope: string;
  /** Sequence of the first amendment to show; undefined for the newest. */
  from: number | undefined;
}

/** The pending amendments, newest first. */
export function Queue({ scope, from }: Props) {
  // First sequence of each page; the last page is visible.
  const [pages, setPages] = useState<readonly (number | undefined)[]>(
    from === undefined ? [undefined] : [undefined, from],
  );
  const toSequence = pages.at(-1);
  const resource = useResource(
    (signal) => queryAmendments(api, scope, { status: "pending", toSequence, limit: PAGE }, signal),
    [scope, toSequence],
  );
  const list = useRef<HTMLElement>(null);
  /** Position among the cards of the one that was just decided; a damaged amendment has no card. */
  const decided = useRef<number>(undefined);
  // The decided card had the focus; the next key press would begin at the top of the page.
  useLayoutEffect(() => {
    if (decided.current !== undefined) {
      focusCard(list.current, decided.current);
      decided.current = undefined;
    }
  }, [resource.data]);
  const reloadAfter = (position: number) => {
    decided.current = position;
    resource.reload();
  };
  return (
    <section class={css.list} ref={list} tabIndex={-1} aria-label="Pending amendments">
      <Loaded resource={resource} rows={6}>
        {({ records, hasMore }) => {
          const waiting = records.filter((record) => !isTransition(record)).map(toEntry);
          const last = findLastSequence(waiting.map(({ id }) => id));
          const cards = waiting.filter(hasCard);
          return (
            <>
              {waiting.length === 0 && <Nothing hasNewer={pages.length > 1} />}
              {waiting.map((entry) =>
                hasCard(entry) ? (
                  <AmendmentCard key={entry.id} scope={scope} amendment={entry.amendment} status="pending">
                    <Decision
                      scope={scope}
                      amendment={entry.amendment}
                      onReload={() => reloadAfter(cards.indexOf(entry))}
                    />
                  </AmendmentCard>
                ) : (
                  <DamagedNotice key={entry.id} id={entry.id} />
                ),
              )}
              <div class={css.row}>
                <Button icon="refresh" busy={resource.loading} onClick={resource.reload}>
                  Refresh
                </Button>
                {pages.length > 1 && <Button onClick={() => setPages(pages.slice(0, -1))}>Newer</Button>}
                {hasMore && last !== undefined && <Button onClick={() => setPages([...pages, last - 1])}>Older</Button>}
              </div>
            </>
          );
        }}
      </Loaded>
    </section>
  );
}

/** Tells whether an entry is an amendment that can be shown. */
function hasCard(entry: Entry): entry is Entry & { amendment: Amendment } {
  return entry.amendment !== undefined && !entry.damaged;
}

/** Focuses the card at a position, or the nearest one, or the list; not if an element still has the focus. */
function focusCard(list: HTMLElement | null, position: number): void {
  if (document.activeElement !== document.body) {
    return;
  }
  const cards = list?.querySelectorAll("article") ?? [];
  (cards[Math.min(position, cards.length - 1)] ?? list)?.focus();
}

function Nothing({ hasNewer }: { hasNewer: boolean }) {
  return hasNewer ? (
    <Empty title="No pending amendments on this page">“Newer” shows the amendments that were made later.</Empty>
  ) : (
    <Empty title="No pending amendments">
      New amendments appear here. If you expected some, check the spelling of the scope.
    </Empty>
  );
}
