import { Button } from "@/components/Button.tsx";
import { Checkbox, Field, Select } from "@/components/Field.tsx";
import { createParameter, type ParameterDraft, TYPES } from "./draft.ts";
import css from "./QueryEditor.module.css";

interface Props {
  parameters: readonly ParameterDraft[];
  onChange: (parameters: readonly ParameterDraft[]) => void;
  /** The message of a field such as `parameters[0].name`. */
  failing: (field: string) => string | undefined;
}

const OPTIONS = TYPES.map((type) => ({ value: type as string, label: type }));

/** The declared parameters of a query. */
export function Parameters({ parameters, onChange, failing }: Props) {
  const change = (id: number, some: Partial<ParameterDraft>) =>
    onChange(parameters.map((each) => (each.id === id ? { ...each, ...some } : each)));
  return (
    <>
      {parameters.length === 0 && <p>None besides the time range and the row limit.</p>}
      <ol class={css.parameters}>
        {parameters.map((parameter, index) => (
          <Row
            key={parameter.id}
            parameter={parameter}
            label={`Parameter ${index + 1}`}
            failing={(member) => failing(`parameters[${index}].${member}`)}
            onChange={(some) => change(parameter.id, some)}
            onRemove={() => onChange(parameters.filter((each) => each.id !== parameter.id))}
          />
        ))}
      </ol>
      <div>
        <Button icon="plus" onClick={() => onChange([...parameters, createParameter()])}>
          Add a parameter
        </Button>
      </div>
    </>
  );
}

interface RowProps {
  parameter: ParameterDraft;
  label: string;
  failing: (member: string) => string | undefined;
  onChange: (some: Partial<ParameterDraft>) => void;
  onRemove: () => void;
}

function Row({ parameter, label, failing, onChange, onRemove }: RowProps) {
  return (
    <li class={css.parameter}>
      <Field
        label={`${label}, name`}
        hideLabel
        mono
        placeholder="name"
        value={parameter.name}
        onInput={(name) => onChange({ name })}
        error={failing("name")}
      />
      <Select
        label={`${label}, type`}
        hideLabel
        value={parameter.type}
        options={OPTIONS}
        onChange={(type) => onChange({ type })}
        error={failing("type")}
      />
      <Field
        label={`${label}, default`}
        hideLabel
        mono
        disabled={parameter.required}
        placeholder={
          parameter.required ? "no default" : parameter.type === "string" ? "default: empty" : "default: null"
        }
        value={parameter.required ? "" : parameter.fallback}
        onInput={(fallback) => onChange({ fallback })}
        error={failing("default")}
      />
      <div class={css.check}>
        <Checkbox label="required" checked={parameter.required} onChange={(required) => onChange({ required })} />
      </div>
      <Button kind="quiet" icon="close" label={`Remove ${label.toLowerCase()}`} onClick={onRemove} />
    </li>
  );
}
