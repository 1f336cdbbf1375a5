import { useEffect, useState } from "preact/hooks";
import { getUsage, subscribeToUsage } from "@/api/usage.ts";
import { formatCount, formatTime } from "@/format.ts";
import css from "./Keys.module.css";

/** The caller's use of its rate limit, after each reply. */
export function Usage() {
  const [shown, setShown] = useState(getUsage);
  useEffect(() => {
    setShown(getUsage());
    return subscribeToUsage(() => setShown(getUsage()));
  }, []);
  if (!shown) {
    return null;
  }
  const used = Math.max(0, shown.limit - shown.remaining);
  const share = Math.min(1, used / Math.max(1, shown.limit));
  const text = `${formatCount(used)} of ${formatCount(shown.limit)} requests in ${shown.windowSeconds} s`;
  return (
    <div
      class={css.usage}
      title={`As of ${formatTime(shown.at.toISOString())}; the limit resets in ${shown.resetSeconds} s`}
    >
      <span>Your usage: {text}</span>
      {/* biome-ignore lint/a11y/useSemanticElements: the look of a meter element differs between browsers */}
      <div
        class={css.track}
        role="meter"
        aria-label="Your usage"
        aria-valuemin={0}
        aria-valuemax={shown.limit}
        aria-valuenow={used}
        aria-valuetext={text}
      >
        <div class={share > 0.8 ? css.nearly : css.used} style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  );
}
