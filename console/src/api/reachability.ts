/** Tells whether the service responds, by a small file of the console. */
export async function isServiceReachable(): Promise<boolean> {
  try {
    await fetch("/console/favicon.svg", { cache: "no-store", credentials: "omit" });
    return true;
  } catch {
    return false;
  }
}
