import { afterEach, expect, test, vi } from "vitest";

/** The machine's preference, as Chromium reports it: a read between a change and its event cancels the event. */
class Preference extends EventTarget {
  #real = false;
  #known = false;
  get matches(): boolean {
    this.#known = this.#real;
    return this.#known;
  }
  set(value: boolean): void {
    this.#real = value;
  }
  /** Ends a frame: dispatches the event of a change that nobody has read. */
  paint(): void {
    if (this.#known !== this.#real) {
      this.#known = this.#real;
      this.dispatchEvent(new Event("change"));
    }
  }
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
  delete document.documentElement.dataset.theme;
});

test("the page follows the machine's preference even if it renders between the change and its event", async () => {
  const preference = new Preference();
  vi.stubGlobal("matchMedia", () => preference);
  // Test files share modules, and theme.ts reads the preference when it is loaded.
  vi.resetModules();
  const { getTheme, startTheme } = await import("../src/shell/theme.ts");
  startTheme();
  expect(document.documentElement.dataset.theme).toBe("light");
  preference.set(true);
  getTheme();
  preference.paint();
  expect(document.documentElement.dataset.theme).toBe("dark");
  expect(getTheme()).toBe("dark");
});
