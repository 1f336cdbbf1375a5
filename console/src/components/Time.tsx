import { formatTime } from "@/format.ts";
import { useZone } from "@/shell/timeZone.ts";

interface Props {
  /** RFC 3339; null or undefined shows a dash. */
  at: string | null | undefined;
  /** With milliseconds. */
  precise?: boolean;
}

/** An instant in the zone of the page; the title has the exact time in UTC. */
export function Time({ at, precise = false }: Props) {
  const zone = useZone();
  if (!at) {
    return <span>–</span>;
  }
  return (
    <time dateTime={at} title={`${at.replace("T", " ").replace("Z", "")} UTC`}>
      {formatTime(at, precise, zone)}
    </time>
  );
}
