import css from "@/administration/Administration.module.css";
import { ChangePanel } from "@/administration/ChangePanel.tsx";
import { ItemFormFrame } from "@/administration/ItemFormFrame.tsx";
import { ItemPage, type ShownItem } from "@/administration/ItemPage.tsx";
import { ReadOnlyNotice } from "@/administration/ReadOnlyNotice.tsx";
import { RemoveButton } from "@/administration/RemoveButton.tsx";
import { useItemForm } from "@/administration/useItemForm.ts";
import { type SurfaceItem, surfacePath } from "@/api/surfaces.ts";
import { showToast } from "@/components/toasts.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { SurfaceFields } from "./SurfaceFields.tsx";
import { NEW_SURFACE, SURFACE_RULES } from "./surfaceRules.ts";

/** The form that adds a surface. */
export function NewSurface() {
  const form = useItemForm(SURFACE_RULES, null, NEW_SURFACE, (surface) => {
    showToast(`“${surface.name}” is added`);
    navigate(buildHref("surfaces", [surface.lookup]));
  });
  return (
    <Page title="Add surface" description="A group of connections that belong together, such as a cooling loop.">
      <Panel>
        <ItemFormFrame form={form} editable createLabel="Add surface" onCancel={() => navigate(buildHref("surfaces"))}>
          <SurfaceFields form={form} />
        </ItemFormFrame>
      </Panel>
    </Page>
  );
}

/** One surface: definition, queries and changes. */
export function SurfacePage({ lookup }: { lookup: string }) {
  const manages = useHasRights("Workspace.Catalog.Manage");
  return (
    <ItemPage<SurfaceItem>
      path={surfacePath(lookup)}
      name={lookup}
      list={{ page: "surfaces", title: "All surfaces" }}
      toTitle={({ name }) => name}
      actions={({ item, reload }) =>
        manages && (
          <RemoveButton
            noun="surface"
            name={item.name}
            path={surfacePath(item.lookup)}
            etag={item.etag}
            page="surfaces"
            onReload={reload}
          >
            <p>Its connections and their telemetry remain.</p>
          </RemoveButton>
        )
      }
    >
      {(shown) => <Shown {...shown} editable={manages} />}
    </ItemPage>
  );
}

function Shown({ item, isRemoved, replace, editable }: ShownItem<SurfaceItem> & { editable: boolean }) {
  const form = useItemForm(
    SURFACE_RULES,
    item,
    NEW_SURFACE,
    (saved) => {
      replace(saved);
      showToast(`“${saved.name}” is saved`);
    },
    replace,
  );
  return (
    <>
      {!editable && <ReadOnlyNotice right="Workspace.Catalog.Manage" />}
      <Panel title="Surface">
        <ItemFormFrame form={form} editable={editable} createLabel="Add surface">
          <SurfaceFields form={form} />
        </ItemFormFrame>
      </Panel>
      <Panel title="Queries">
        {item.queries.length === 0 ? (
          <p class={css.soft}>No query belongs to this surface.</p>
        ) : (
          <ul class={css.names}>
            {item.queries.map((query) => (
              <li key={query}>
                <a href={buildHref("queries", [query])}>{query}</a>
              </li>
            ))}
          </ul>
        )}
      </Panel>
      <ChangePanel
        isRemoved={isRemoved}
        item={item}
        audited={{ target: "PlatformConfig", entityTypes: ["Surface"], entityId: item.lookup }}
      />
    </>
  );
}
