import { session } from "@/session/index.ts";

/** A message that comes and goes. */
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
    change([]);
  }
});

/** Tells of something that was done, or went wrong where no form is left to say so. */
export function toast(text: string, kind: Toast["kind"] = "good"): void {
  last += 1;
  const made: Toast = { id: last, text, kind };
  change([...toasts, made]);
  setTimeout(() => dismiss(made.id), SECONDS[kind] * 1000);
}

export function dismiss(id: number): void {
  change(toasts.filter((each) => each.id !== id));
}

export function onToasts(listener: (toasts: readonly Toast[]) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function change(now: readonly Toast[]): void {
  toasts = now;
  for (const listener of listeners) {
    listener(toasts);
  }
}
