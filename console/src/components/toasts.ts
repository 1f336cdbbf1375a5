import { session } from "@/session/index.ts";

/** A short message that disappears by itself. */
export interface Toast {
  id: number;
  text: string;
  kind: "good" | "bad";
}

const SECONDS = { good: 4, bad: 8 };
let toasts: readonly Toast[] = [];
let last = 0;
const listeners = new Set<(toasts: readonly Toast[]) => void>();

session.subscribe(() => {
  if (session.state.state === "out") {
    setToasts([]);
  }
});

/** Shows a toast: a completed action, or an error outside any form. */
export function showToast(text: string, kind: Toast["kind"] = "good"): void {
  last += 1;
  const made: Toast = { id: last, text, kind };
  setToasts([...toasts, made]);
  setTimeout(() => dismiss(made.id), SECONDS[kind] * 1000);
}

export function dismiss(id: number): void {
  setToasts(toasts.filter((each) => each.id !== id));
}

export function subscribeToToasts(listener: (toasts: readonly Toast[]) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function setToasts(now: readonly Toast[]): void {
  toasts = now;
  for (const listener of listeners) {
    listener(toasts);
  }
}
