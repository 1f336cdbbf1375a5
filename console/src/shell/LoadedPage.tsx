import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isServiceReachable } from "@/api/reachability.ts";
import { Button } from "@/components/Button.tsx";
import { Loading } from "@/components/Loading.tsx";
import { Notice } from "@/components/Notice.tsx";
import { useWork } from "@/components/useWork.ts";
import type { PageProps } from "@/pageProps.ts";
import type { PageEntry } from "@/pages.ts";
import type { Route } from "@/router/route.ts";
import { Page } from "./Page.tsx";

interface Props {
  /** Must be stable between renders. */
  entry: Pick<PageEntry, "title" | "load">;
  route: Route;
}

/** Loads and shows a page or a view of one; an error in it does not affect the rest of the console. */
export function LoadedPage({ entry, route }: Props) {
  const [Shown, setShown] = useState<ComponentType<PageProps>>();
  const [failed, setFailed] = useState<"unreachable" | "broken">();
  useEffect(() => {
    let gone = false;
    entry.load().then(
      (module) => gone || setShown(() => module.default),
      async () => {
        const found = await findReason();
        return gone || setFailed(found);
      },
    );
    return () => {
      gone = true;
    };
  }, [entry]);
  if (failed === "unreachable") {
    return <Unreachable title={entry.title} />;
  }
  if (failed === "broken") {
    return <Broken>The page could not be loaded. The console may have been updated.</Broken>;
  }
  return Shown ? (
    <Boundary>
      <Shown route={route} />
    </Boundary>
  ) : (
    <Loading label={`Loading ${entry.title}`} rows={8} />
  );
}

/** Returns why a page could not be loaded; only a service that responds can be asked for the page again. */
async function findReason(): Promise<"unreachable" | "broken"> {
  return (await isServiceReachable()) ? "broken" : "unreachable";
}

function Unreachable({ title }: { title: string }) {
  const { busy, run } = useWork();
  const [tries, setTries] = useState(0);
  // A reload without the service would replace the console by an error page of the browser.
  const retry = async () => {
    if (await isServiceReachable()) {
      window.location.reload();
    }
    setTries(tries + 1);
  };
  return (
    <Page title={title}>
      <Notice kind="bad" title="The service does not respond">
        <p>The page was not loaded. Check that the service runs and that this machine can reach it.</p>
        {tries > 0 && <p>It still does not respond, after {tries === 1 ? "1 retry" : `${tries} retries`}.</p>}
        <Button icon="refresh" busy={busy} onClick={() => void run(retry)}>
          Retry
        </Button>
      </Notice>
    </Page>
  );
}

function Broken({ children }: { children: ComponentChildren }) {
  return (
    <Notice kind="bad" title="This page is not working">
      <p>{children}</p>
      <Button icon="refresh" onClick={() => window.location.reload()}>
        Reload
      </Button>
    </Notice>
  );
}

class Boundary extends Component<{ children: ComponentChildren }, { error: string | undefined }> {
  override state = { error: undefined };

  static override getDerivedStateFromError(error: unknown) {
    return { error: String(error) };
  }

  override render() {
    return this.state.error === undefined ? this.props.children : <Broken>{this.state.error}</Broken>;
  }
}
