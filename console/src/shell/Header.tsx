import { useLayoutEffect, useState } from "preact/hooks";
import { fetchWorkspace } from "@/api/catalog.ts";
import { api } from "@/api/index.ts";
import type { Identity } from "@/api/keys.ts";
import { Badge } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import { useResource } from "@/components/useResource.ts";
import { confirmSignOut } from "@/router/unsaved.ts";
import { session } from "@/session/index.ts";
import css from "./Header.module.css";
import { getTheme, subscribeToTheme, toggleTheme } from "./theme.ts";
import { ZoneButton } from "./ZoneButton.tsx";

interface Props {
  who: Identity;
  navOpen: boolean;
  onToggleNav: () => void;
}

/** The header: workspace, user, time zone, theme and sign-out. */
export function Header({ who, navOpen, onToggleNav }: Props) {
  const [shown, setShown] = useState(getTheme());
  useLayoutEffect(() => subscribeToTheme(() => setShown(getTheme())), []);
  const readable = who.accessRights.includes("Workspace.Catalog.Read");
  const named = useResource(
    async (signal) => (readable ? (await fetchWorkspace(api, signal)).name : undefined),
    [who.workspace, readable],
  );
  // Empty until the name is loaded, because another text would be replaced at once.
  const title = named.data ?? (readable && named.loading ? "" : (who.workspace ?? "Workspace"));
  return (
    <header class={css.header}>
      <span class={css.menu}>
        <button
          type="button"
          class={css.toggle}
          aria-expanded={navOpen}
          aria-controls="navigation"
          onClick={onToggleNav}
        >
          Menu
        </button>
      </span>
      <span class={css.workspace}>
        <img src="/console/favicon.svg" alt="" width="20" height="20" />
        <strong>{title}</strong>
        {named.data && <span class={css.id}>{who.workspace}</span>}
      </span>
      <span class={css.who}>
        <span class={css.name} title={who.principal ?? undefined}>
          {who.name || who.principal || "Service"}
        </span>
        {who.principal === null && <Badge>no user identity</Badge>}
        <ZoneButton />
        <Button
          kind="quiet"
          icon={shown === "dark" ? "sun" : "moon"}
          label={shown === "dark" ? "Light theme" : "Dark theme"}
          onClick={toggleTheme}
        />
        <Button kind="quiet" icon="out" label="Sign out" onClick={() => confirmSignOut() && session.signOut()} />
      </span>
    </header>
  );
}
