import { useEffect, useState } from "preact/hooks";
import type { IssuedToken } from "@/api/keys.ts";
import { ApiError } from "@/api/problem.ts";
import { Button } from "@/components/Button.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { RightsList } from "@/components/rights/RightsList.tsx";
import { ScopeTree } from "@/components/rights/ScopeTree.tsx";
import { Time } from "@/components/Time.tsx";
import { useResource } from "@/components/useResource.ts";
import { readClaim } from "@/session/claims.ts";
import { useIdentity } from "@/session/hooks.ts";
import { session } from "@/session/index.ts";
import type { Right } from "@/session/rights.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Keys.module.css";
import { LifetimeChoice } from "./LifetimeChoice.tsx";
import { canIssue, parseMinutes } from "./lifetimes.ts";
import { Secret } from "./Secret.tsx";

const USUAL = "60";
const SHORTEST = "15";

/** A form that issues a token with some of the caller's rights. */
export function CreateToken() {
  const held = useIdentity().accessRights;
  const longest = useResource(() => session.longestExpiry(), []);
  const [lifetime, setLifetime] = useState(USUAL);
  const [chosen, setChosen] = useState<ReadonlySet<Right>>(new Set(held));
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>();
  const [made, setMade] = useState<IssuedToken>();
  const until = longest.data ?? null;
  useEffect(() => {
    if (!canIssue(Number(USUAL), until, session.now())) {
      // A lifetime that the reader has chosen meanwhile stays.
      setLifetime((before) => (before === USUAL ? SHORTEST : before));
    }
  }, [until]);
  const minutes = parseMinutes(lifetime);
  const wrong = checkLifetime(minutes, until);
  const submit = async (event: Event) => {
    event.preventDefault();
    setTried(true);
    setRefused(undefined);
    if (minutes === undefined || wrong || chosen.size === 0) {
      return;
    }
    setBusy(true);
    try {
      setMade(await session.issueToken(minutes, chosen.size === held.length ? undefined : [...chosen].sort()));
      setTried(false);
    } catch (error) {
      setRefused(error);
    }
    setBusy(false);
  };
  if (made) {
    return (
      <Secret
        title="Your new token"
        secret={made.Token}
        facts={[
          { label: "Expires", value: <Time at={made.ExpiresAt} /> },
          { label: "ID, to revoke it", value: <code>{readClaim(made.Token, "jti")}</code> },
          { label: "Rights", value: <RightsList rights={made.AccessRights} /> },
          { label: "Sent as", value: <code>Authorization: Bearer …</code> },
        ]}
        onDone={() => setMade(undefined)}
      />
    );
  }
  return (
    <form class={css.form} onSubmit={(event) => void submit(event)} noValidate>
      <Panel title="Lifetime">
        <LifetimeChoice
          value={lifetime}
          onChange={setLifetime}
          until={until}
          error={(tried ? wrong : undefined) ?? findFieldError(refused, "minutes")}
        />
      </Panel>
      <Panel title="Access">
        <ScopeTree
          label="Rights"
          held={held}
          chosen={chosen}
          onChange={setChosen}
          error={tried && chosen.size === 0 ? "Choose at least one right." : findFieldError(refused, "scopes")}
        />
      </Panel>
      {refused !== undefined && <ErrorNotice error={refused} />}
      <div>
        <Button kind="primary" type="submit" icon="key" busy={busy}>
          Create token
        </Button>
      </div>
    </form>
  );
}

function checkLifetime(minutes: number | undefined, until: string | null): string | undefined {
  if (minutes === undefined) {
    return "Enter whole minutes from 1 to 43200, which is 30 days.";
  }
  return canIssue(minutes, until, session.now())
    ? undefined
    : "The token would be valid longer than your credential. Choose a shorter lifetime.";
}

/** Returns the service's message about a field. */
function findFieldError(refused: unknown, field: string): string | undefined {
  return refused instanceof ApiError ? refused.fieldMessage(field) : undefined;
}
