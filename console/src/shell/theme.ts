export type Theme = "light" | "dark";

const NAME = "workspace-console-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

/** The theme shown: what was chosen, else what the machine prefers. */
export function theme(): Theme {
  return chosen() ?? (dark.matches ? "dark" : "light");
}

/** Chooses the other theme; choosing what the machine prefers follows the machine again. */
export function toggleTheme(): void {
  const wanted: Theme = theme() === "dark" ? "light" : "dark";
  const preferred: Theme = dark.matches ? "dark" : "light";
  try {
    if (wanted === preferred) {
      localStorage.removeItem(NAME);
    } else {
      localStorage.setItem(NAME, wanted);
    }
  } catch {
    override = wanted;
  }
  apply();
}

/** Shows the theme, now and whenever the machine's preference changes. */
export function startTheme(): void {
  apply();
  dark.addEventListener("change", apply);
}

export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let override: Theme | undefined;

function apply(): void {
  document.documentElement.dataset.theme = theme();
  for (const listener of listeners) {
    listener();
  }
}

function chosen(): Theme | undefined {
  try {
    const kept = localStorage.getItem(NAME);
    return kept === "dark" || kept === "light" ? kept : override;
  } catch {
    return override;
  }
}
