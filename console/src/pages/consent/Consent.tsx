import { useEffect, useMemo, useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { type ConsentQuestion, decide, fetchQuestion, readParameters } from "@/api/oauth.ts";
import { Button } from "@/components/Button.tsx";
import { Facts } from "@/components/Facts.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { RightsList } from "@/components/rights/RightsList.tsx";
import { ScopeTree } from "@/components/rights/ScopeTree.tsx";
import { useResource } from "@/components/useResource.ts";
import { useWork } from "@/components/useWork.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import type { PageProps } from "@/pageProps.ts";
import { useSession } from "@/session/hooks.ts";
import { forgetConsent } from "@/session/pendingConsent.ts";
import type { Right } from "@/session/rights.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import css from "./Consent.module.css";
import { isSafeRedirection } from "./redirection.ts";

/** The page on which a person allows an application to act with some of the person's rights. */
export default function Consent({ route }: PageProps) {
  const text = route.query.toString();
  const parameters = useMemo(() => readParameters(new URLSearchParams(text)), [text]);
  const question = useResource((signal) => fetchQuestion(api, parameters, signal), [text]);
  const [left, setLeft] = useState(false);
  const leave = (address: string) => {
    forgetConsent();
    if (!isSafeRedirection(address)) {
      throw new Error("The address of the application is not safe.");
    }
    setLeft(true);
    window.location.assign(address);
  };
  const answer = async (scopes: readonly Right[] | undefined) =>
    leave((await decide(api, parameters, scopes)).redirectTo);
  return (
    <Page title="Allow an application" description="An application asks to use this workspace in your name.">
      {left ? (
        <Notice title="The browser returns to the application. You can close this page." />
      ) : (
        <Loaded resource={question}>
          {(shown) =>
            "redirectTo" in shown ? (
              <Faulty onReturn={() => leave(shown.redirectTo)} address={shown.redirectTo} />
            ) : (
              <Question key={text} of={shown} onAnswer={answer} />
            )
          }
        </Loaded>
      )}
    </Page>
  );
}

interface QuestionProps {
  of: ConsentQuestion;
  /** @param scopes the delegated rights, undefined if the person declines */
  onAnswer: (scopes: readonly Right[] | undefined) => Promise<void>;
}

function Question({ of: { client, redirectHost, accessRights, missingRights }, onAnswer }: QuestionProps) {
  const state = useSession();
  const who = state.state === "in" ? (state.who.principal ?? state.who.name) : "";
  const [chosen, setChosen] = useState<ReadonlySet<Right>>(new Set(accessRights));
  const work = useWork();
  const answer = (scopes: readonly Right[] | undefined) => void work.run(() => onAnswer(scopes));
  return (
    <Panel title={`${client.name} asks for access`}>
      <div class={css.question}>
        {!client.isDeclared && (
          <Notice kind="warn" title="This workspace does not know the application">
            The name of the application is not verified. Continue only if you have just started the sign-in and trust
            the address below.
          </Notice>
        )}
        <Facts
          facts={[
            { label: "Application", value: <VisibleText text={client.name} /> },
            { label: client.isDeclared ? "Client ID" : "Address of the application", value: client.id },
            { label: "You return to", value: <strong>{redirectHost}</strong> },
            { label: "It acts as", value: <VisibleText text={who} /> },
          ]}
        />
        <ScopeTree label="Rights" held={accessRights} chosen={chosen} onChange={setChosen} />
        {missingRights.length > 0 && (
          <Notice title="It also asks for rights that you do not have. It does not get them.">
            <RightsList rights={missingRights} />
          </Notice>
        )}
        {work.error !== undefined && <ErrorNotice error={work.error} />}
        <div class={css.buttons}>
          <Button kind="primary" busy={work.busy} disabled={chosen.size === 0} onClick={() => answer([...chosen])}>
            Allow
          </Button>
          <Button busy={work.busy} onClick={() => answer(undefined)}>
            Decline
          </Button>
        </div>
      </div>
    </Panel>
  );
}

function Faulty({ address, onReturn }: { address: string; onReturn: () => void }) {
  const [reason, setReason] = useState("");
  useEffect(() => {
    const query = new URL(address).searchParams;
    setReason(query.get("error_description") ?? query.get("error") ?? "");
  }, [address]);
  return (
    <Notice kind="bad" title="The request of the application is not valid">
      <p>{reason}</p>
      <Button onClick={onReturn}>Return to the application</Button>
    </Notice>
  );
}
