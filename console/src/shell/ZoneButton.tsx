import css from "./Header.module.css";
import { describeOffset, describeZone, toggleZone, useZone } from "./timeZone.ts";

/** Names the time zone of the page, and switches between the reader's zone and UTC, if they differ. */
export function ZoneButton() {
  const zone = useZone();
  const now = new Date();
  const name = describeZone(zone, now);
  const offset = describeOffset(zone, now);
  const other = describeZone(zone === "utc" ? "local" : "utc", now);
  if (name === other) {
    return (
      <span class={css.onlyZone} title="Times are in UTC, which is also the zone of this machine.">
        <span class="visually-hidden">Times in </span>
        {name}
      </span>
    );
  }
  return (
    <button type="button" class={css.zone} title={`Times are in ${name}. Click for ${other}.`} onClick={toggleZone}>
      <span class="visually-hidden">Times in </span>
      <span class={css.zoneName}>{name}</span>
      <span class={css.zoneOffset}>{offset}</span>
      <span class="visually-hidden">; switch to {other}</span>
    </button>
  );
}
