import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Identity } from "@/api/keys.ts";
import { joinClasses } from "@/components/classes.ts";
import { Empty } from "@/components/Empty.tsx";
import { Loading } from "@/components/Loading.tsx";
import { Toasts } from "@/components/Toasts.tsx";
import { canOpen, PAGES, type PageEntry } from "@/pages.ts";
import { type Route, useRoute } from "@/router/route.ts";
import { useSession } from "@/session/hooks.ts";
import { SignIn } from "@/session/SignIn.tsx";
import { SignInAgain } from "@/session/SignInAgain.tsx";
import css from "./App.module.css";
import { recordNavigation } from "./focus.ts";
import { Header } from "./Header.tsx";
import { LoadedPage } from "./LoadedPage.tsx";
import { Nav } from "./Nav.tsx";
import { Page } from "./Page.tsx";
import { setZoneArea } from "./timeZone.ts";
import { useMenuClosing } from "./useMenuClosing.ts";

/** The console: the sign-in page, or the shell around the current page. */
export function App() {
  const state = useSession();
  const shown = state.state === "in" ? state : state.held;
  const locked = state.state !== "in";
  useFocusReturn(locked);
  return (
    <>
      {shown && (
        <div class={joinClasses(locked && css.locked)}>
          <Shell key={shown.number} who={shown.who} />
        </div>
      )}
      {locked && shown && (
        <SignInAgain
          busy={state.state === "starting"}
          reason={state.state === "out" ? state.reason : undefined}
          who={shown.who}
        />
      )}
      {!shown && state.state === "out" && <SignIn busy={false} reason={state.reason} />}
      {!shown && state.state === "starting" && (
        <main class={css.starting}>
          <Loading label="Signing in" rows={3} />
        </main>
      )}
      <Toasts />
    </>
  );
}

/**
 * Returns the focus to the page at the end of a lock.
 *
 * It remembers the last focused element. At the start of the lock, often no element has the focus any more, because a
 * button is disabled while its request runs.
 */
function useFocusReturn(locked: boolean): void {
  const last = useRef<EventTarget>(null);
  useLayoutEffect(() => {
    if (locked) {
      return;
    }
    if (last.current instanceof HTMLElement) {
      last.current.focus({ preventScroll: true });
    }
    const remember = ({ target }: FocusEvent) => {
      last.current = target;
    };
    document.addEventListener("focusin", remember);
    return () => document.removeEventListener("focusin", remember);
  }, [locked]);
}

function Shell({ who }: { who: Identity }) {
  const route = useRoute();
  const main = useRef<HTMLElement>(null);
  const [navOpen, setNavOpen] = useState(false);
  const pages = PAGES.filter((page) => canOpen(page, who.accessRights));
  const current = route.page === "" ? pages[0] : PAGES.find((page) => page.path === route.page);
  // Before the page is rendered, so that its first times have the right zone.
  setZoneArea(current?.zoneArea ?? "plant");
  usePageChanges(current?.path ?? route.page);
  const closeNav = useCallback(() => setNavOpen(false), []);
  useMenuClosing(navOpen, closeNav);
  const skip = (event: Event) => {
    event.preventDefault();
    main.current?.focus();
  };
  return (
    <div class={css.shell}>
      {/* biome-ignore lint/a11y/useValidAnchor: the address behind # is a page of the console, so focus moves by hand */}
      <a class={css.skip} href="#main" onClick={skip}>
        Skip to content
      </a>
      <Header who={who} navOpen={navOpen} onToggleNav={() => setNavOpen(!navOpen)} />
      <div class={css.columns}>
        <Nav
          pages={pages.filter((page) => !page.unlisted)}
          current={current?.path ?? ""}
          open={navOpen}
          onNavigate={closeNav}
        />
        <main ref={main} id="main" class={css.main} tabIndex={-1}>
          <Current entry={current} route={route} allowed={current !== undefined && pages.includes(current)} />
        </main>
      </div>
    </div>
  );
}

function Current({ entry, route, allowed }: { entry: PageEntry | undefined; route: Route; allowed: boolean }) {
  if (entry === undefined) {
    return (
      <Page key="nothing" title="Page not found">
        <Empty title="Unknown address">Choose a page in the navigation.</Empty>
      </Page>
    );
  }
  if (!allowed) {
    return (
      <Page key={entry.path} title={entry.title}>
        <Empty title="You don't have access to this page">
          This page needs {[...entry.rights, ...(entry.anyRight ? [entry.anyRight.join(" or ")] : [])].join(" and ")}.
          Sign in with a key that has these rights, or ask an administrator.
        </Empty>
      </Page>
    );
  }
  return <LoadedPage key={entry.path} entry={entry} route={route} />;
}

/** Records each change of the page except the first. */
function usePageChanges(path: string): void {
  const before = useRef(path);
  if (before.current !== path) {
    before.current = path;
    recordNavigation();
  }
}
