import { useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import { joinClasses } from "@/components/classes.ts";
import { DateField } from "@/components/DateField.tsx";
import { Field } from "@/components/Field.tsx";
import { formatRecordId } from "@/proof/record.ts";
import { navigate } from "@/router/route.ts";
import css from "./Audit.module.css";
import { buildAddress, countFilters, type Place } from "./place.ts";

/** The filters of a view; the address contains them, so that people can share it. */
export function FilterBar({ place }: { place: Place }) {
  const { filters } = place;
  const [action, setAction] = useState(filters.actionType ?? "");
  const [type, setType] = useState(filters.entityType ?? "");
  const [who, setWho] = useState(filters.userId ?? "");
  const [from, setFrom] = useState(filters.startDate ?? "");
  const [to, setTo] = useState(filters.endDate ?? "");
  const [at, setAt] = useState(place.at === undefined ? "" : formatRecordId(place.at));
  const apply = (event: Event) => {
    event.preventDefault();
    const entered = {
      actionType: action.trim(),
      entityType: type.trim(),
      userId: who.trim(),
      startDate: from || undefined,
      endDate: to || undefined,
    };
    navigate(
      buildAddress({ ...place, filters: entered, at: Number(at) > 0 ? Number(at) : undefined, record: undefined }),
    );
  };
  const clear = () => navigate(buildAddress({ ...place, filters: {}, at: undefined, record: undefined }));
  const set = countFilters(filters) > 0 || place.at !== undefined;
  return (
    <form
      class={joinClasses(css.filters, place.record !== undefined && css.aside)}
      onSubmit={apply}
      aria-label="Filters"
    >
      <Field label="Action" value={action} onInput={setAction} placeholder="any" />
      <Field label="Entity type" value={type} onInput={setType} placeholder="any" />
      <Field label="Who" value={who} onInput={setWho} placeholder="anyone" />
      <DateField label="From" value={from} onInput={setFrom} />
      <DateField label="To" value={to} onInput={setTo} />
      <Field
        label="Up to record"
        value={at}
        onInput={(text) => setAt(text.replace(/\D/g, "").slice(0, 12))}
        placeholder="newest"
        mono
      />
      <div class={css.apply}>
        <Button type="submit" icon="search">
          Apply
        </Button>
        {set && (
          <Button kind="quiet" onClick={clear}>
            Clear
          </Button>
        )}
      </div>
    </form>
  );
}
