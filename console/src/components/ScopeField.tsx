import { useId } from "preact/hooks";
import { MAX_SCOPE } from "@/proof/chains.ts";
import { recallScopes } from "@/proof/scopes.ts";
import { Button } from "./Button.tsx";
import css from "./ScopeField.module.css";

interface Props {
  value: string;
  onInput: (value: string) => void;
  /** Called with the submitted scope. */
  onOpen: (scope: string) => void;
}

/** An input for a scope; suggests recent scopes, because the service has no list of them. */
export function ScopeField({ value, onInput, onOpen }: Props) {
  const id = useId();
  return (
    <form
      class={css.scope}
      onSubmit={(event) => {
        event.preventDefault();
        onOpen(value);
      }}
    >
      <label for={id}>Scope</label>
      <input
        id={id}
        list={`${id}-recent`}
        value={value}
        maxLength={MAX_SCOPE}
        placeholder="line-1"
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <datalist id={`${id}-recent`}>
        {recallScopes().map((scope) => (
          <option key={scope} value={scope} />
        ))}
      </datalist>
      <Button type="submit" disabled={value === ""}>
        Open
      </Button>
    </form>
  );
}
