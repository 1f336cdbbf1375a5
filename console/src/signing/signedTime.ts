/** Formats the time of a signature with its zone, as the printable report does: 2026-05-04 08:00:00 UTC. */
export function formatSignedTime(at: string): string {
  const [day, clock] = at.replace(/Z$/, "").split("T");
  return clock === undefined ? at : `${day} ${clock.split(".")[0]} UTC`;
}
