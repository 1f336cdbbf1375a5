let navigated = false;

/** Records a navigation: the next heading takes the focus, but not on the first page. */
export function recordNavigation(): void {
  navigated = true;
}

/** Focuses a heading after a navigation, for screen readers and keyboard users. */
export function takeFocus(heading: HTMLElement | null): void {
  if (navigated) {
    navigated = false;
    heading?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}
