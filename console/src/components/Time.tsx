import { formatLocalTime } from "@/format.ts";

interface Props {
  /** RFC 3339; null or undefined shows a dash. */
  at: string | null | undefined;
  /** With milliseconds. */
  precise?: boolean;
}

/** An instant in the reader's own time; the exact one in UTC stands in the title. */
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
