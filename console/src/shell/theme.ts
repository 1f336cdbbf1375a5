export type Theme = "light" | "dark";

const NAME = "workspace-console-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
// Only the listener of changes reads `matches` again: in Chromium, a read between a change and its event cancels the event.
let preferred: Theme = readPreference();

/** Returns the current theme: the user's choice, otherwise the machine's preference. */
export function getTheme(): Theme {
  return recallTheme() ?? preferred;
}

/** Switches the theme; choosing the machine's preference follows the machine again. */
export function toggleTheme(): void {
  const wanted: Theme = getTheme() === "dark" ? "light" : "dark";
  try {
    if (wanted === preferred) {
      localStorage.removeItem(NAME);
    } else {
      localStorage.setItem(NAME, wanted);
    }
  } catch {
    override = wanted;
  }
  applyTheme();
}

/** Applies the theme now and on each change of the machine's preference. */
export function startTheme(): void {
  applyTheme();
  dark.addEventListener("change", () => {
    preferred = readPreference();
    applyTheme();
  });
}

export function subscribeToTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let override: Theme | undefined;

function applyTheme(): void {
  document.documentElement.dataset.theme = getTheme();
  for (const listener of listeners) {
    listener();
  }
}

function readPreference(): Theme {
  return dark.matches ? "dark" : "light";
}

function recallTheme(): Theme | undefined {
  try {
    const kept = localStorage.getItem(NAME);
    return kept === "dark" || kept === "light" ? kept : override;
  } catch {
    return override;
  }
}
