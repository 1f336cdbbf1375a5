// Announcement of decisions within the page, so that counts of waiting decisions are reloaded at once.

const listeners = new Set<() => void>();

/** Announces that a draft or an amendment was created or decided. */
export function announceDecision(): void {
  for (const listener of listeners) {
    listener();
  }
}

/** Calls back after each announcement; returns the function that ends this. */
export function subscribeToDecisions(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
