let navigated = false;

/** Notes that the reader went to another page: the next heading takes the focus. The first page leaves it alone. */
export function recordNavigation(): void {
  navigated = true;
}

/** Focuses a heading after a navigation, so that screen readers and the keyboard go on there. */
export function takeFocus(heading: HTMLElement | null): void {
  if (navigated) {
    navigated = false;
    heading?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}
