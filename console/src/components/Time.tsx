import { formatLocalTime } from "@/format.ts";

interface Props {
  /** RFC 3339; null or undefined shows a dash. */
  at: string | null | undefined;
  /** With milliseconds. */
  precise?: boolean;
}

/** An instant in the reader's time zone; the title has the exact time in UTC. */
export function Time({ at, precise = false }: Props) {
  if (!at) {
    return <span>–</span>;
  }
  return (
    <time dateTime={at} title={`${at.replace("T", " ").replace("Z", "")} UTC`}>
      {formatLocalTime(at, precise)}
    </time>
  );
}
