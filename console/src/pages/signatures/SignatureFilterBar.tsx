import { useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import { DateField } from "@/components/DateField.tsx";
import { Field } from "@/components/Field.tsx";
import { navigate } from "@/router/route.ts";
import css from "./Signatures.module.css";
import { buildListAddress, type SignatureFilters } from "./signatureList.ts";

const NONE: SignatureFilters = { userId: "", from: "", to: "" };

/** The filters of the list; the address contains them, so that people can share it. */
export function SignatureFilterBar({ filters }: { filters: SignatureFilters }) {
  const [entered, setEntered] = useState(filters);
  const change = (some: Partial<SignatureFilters>) => setEntered({ ...entered, ...some });
  const isSet = Object.values(filters).some((value) => value !== "");
  return (
    <form
      class={css.filters}
      aria-label="Filters"
      onSubmit={(event) => {
        event.preventDefault();
        navigate(buildListAddress({ ...entered, userId: entered.userId.trim() }));
      }}
    >
      <Field label="Who" value={entered.userId} onInput={(userId) => change({ userId })} placeholder="anyone" />
      <DateField label="From" value={entered.from} onInput={(from) => change({ from })} />
      <DateField label="To" value={entered.to} onInput={(to) => change({ to })} />
      <div class={css.actions}>
        <Button type="submit" icon="search">
          Apply
        </Button>
        {isSet && (
          <Button kind="quiet" onClick={() => navigate(buildListAddress(NONE))}>
            Clear
          </Button>
        )}
      </div>
    </form>
  );
}
