import { formatReading, formatTime } from "@/format.ts";
import { VisibleText } from "../VisibleText.tsx";
import { LineSample } from "./LineSample.tsx";
import css from "./Plot.module.css";
import type { Reading } from "./readings.ts";

interface Props {
  /** Seconds since 1970. */
  at: number;
  readings: readonly Reading[];
  names: readonly string[];
  unit: string;
  /** Pixels of the cursor from the left. */
  left: number;
  /** Pixels of the whole chart. */
  width: number;
}

const DISTANCE = 14;

/** The time at the cursor and the values there. It is on the side with more room. */
export function Tooltip({ at, readings, names, unit, left, width }: Props) {
  const onLeft = left > width / 2;
  const style = onLeft ? { right: `calc(100% - ${left - DISTANCE}px)` } : { left: `${left + DISTANCE}px` };
  return (
    <div class={css.tooltip} style={style} aria-hidden="true">
      <strong>{formatTime(at * 1000, at % 1 !== 0)}</strong>
      <dl>
        {readings.map(({ line, value }) => (
          <div key={line}>
            <dt>
              <LineSample index={line} />
              <VisibleText text={names[line] ?? ""} />
            </dt>
            <dd>
              {formatReading(value)}
              {unit && ` ${unit}`}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** Describes the values at a moment for screen readers. */
export function describeReadings(
  at: number,
  readings: readonly Reading[],
  names: readonly string[],
  unit: string,
): string {
  const values = readings.map(({ line, value }) => `${names[line]} ${formatReading(value)}${unit && ` ${unit}`}`);
  return [formatTime(at * 1000, at % 1 !== 0), ...values].join("; ");
}
