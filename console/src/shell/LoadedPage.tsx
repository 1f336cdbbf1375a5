import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import { Loading } from "@/components/Loading.tsx";
import { Notice } from "@/components/Notice.tsx";
import type { PageProps } from "@/pageProps.ts";
import type { PageEntry } from "@/pages.ts";
import type { Route } from "@/router/route.ts";

/** Loads and shows a page; an error in it does not affect the rest of the console. */
export function LoadedPage({ entry, route }: { entry: PageEntry; route: Route }) {
  const [Shown, setShown] = useState<ComponentType<PageProps>>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let gone = false;
    entry.load().then(
      (module) => gone || setShown(() => module.default),
      () => gone || setFailed(true),
    );
    return () => {
      gone = true;
    };
  }, [entry]);
  if (failed) {
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
