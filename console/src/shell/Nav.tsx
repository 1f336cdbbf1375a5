import { joinClasses } from "@/components/classes.ts";
import { Icon } from "@/components/Icon.tsx";
import type { PageEntry } from "@/pages.ts";
import { buildHref } from "@/router/route.ts";
import css from "./Nav.module.css";

interface Props {
  pages: readonly PageEntry[];
  current: string;
  /** Whether it is unfolded on a narrow screen. */
  open: boolean;
  onNavigate: () => void;
}

/** Navigation to the pages that the caller may open. */
export function Nav({ pages, current, open, onNavigate }: Props) {
  const groups = [...new Set(pages.map((page) => page.group))];
  return (
    <nav id="navigation" class={joinClasses(css.nav, open && css.open)} aria-label="Pages of the console">
      {groups.map((group) => (
        <section key={group} aria-label={group}>
          <p aria-hidden="true">{group}</p>
          <ul>
            {pages
              .filter((page) => page.group === group)
              .map((page) => (
                <li key={page.path}>
                  <a
                    href={buildHref(page.path)}
                    aria-current={page.path === current ? "page" : undefined}
                    onClick={onNavigate}
                  >
                    <Icon name={page.icon} />
                    {page.title}
                    {page.badge && <page.badge />}
                  </a>
                </li>
              ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}
