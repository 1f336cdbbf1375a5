import { Status, type Tone } from "@/components/Badge.tsx";

const TONES: Readonly<Record<string, Tone>> = { pending: "warn", approved: "good", rejected: "bad", altered: "bad" };

/** The status of an amendment. */
export function AmendmentStatus({ status }: { status: string }) {
  return <Status tone={TONES[status] ?? "neutral"}>{status || "unknown"}</Status>;
}
