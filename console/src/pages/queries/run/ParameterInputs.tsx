import { ApiError } from "@/api/index.ts";
import type { QueryParameter } from "@/api/queries.ts";
import { Field, Select } from "@/components/Field.tsx";
import {
  buildHint,
  chooseInput,
  formatDefault,
  isConnectionParameter,
  isRequired,
  listConnections,
} from "./parameters.ts";

interface Props {
  parameters: readonly QueryParameter[];
  values: ReadonlyMap<string, string>;
  onChange: (values: ReadonlyMap<string, string>) => void;
  error: unknown;
  /** Connections to choose from, for parameters that contain one; empty if they are unknown. */
  connections: readonly string[];
  /** Text of the query. */
  kql: string;
}

/** An input for each declared parameter, of its type and with its default. */
export function ParameterInputs({ parameters, values, onChange, error, connections, kql }: Props) {
  const set = (name: string, value: string) => onChange(new Map(values).set(name, value));
  return (
    <>
      {parameters.map((parameter) => (
        <ParameterInput
          key={parameter.name}
          parameter={parameter}
          connections={isConnectionParameter(parameter, kql) ? connections : []}
          value={values.get(parameter.name) ?? formatDefault(parameter)}
          onInput={(value) => set(parameter.name, value)}
          error={error instanceof ApiError ? error.fieldMessage(`p.${parameter.name}`) : undefined}
        />
      ))}
    </>
  );
}

interface InputProps {
  parameter: QueryParameter;
  value: string;
  onInput: (value: string) => void;
  error: string | undefined;
  connections: readonly string[];
}

function ParameterInput({ parameter, value, onInput, error, connections }: InputProps) {
  const input = chooseInput(parameter.type);
  const common = { label: parameter.name, hint: buildHint(parameter), error };
  if (input === "choice") {
    const none = isRequired(parameter) ? "Choose" : "Null";
    const options = [
      ...(value === "" ? [{ value: "", label: none }] : []),
      { value: "true", label: "true" },
      { value: "false", label: "false" },
    ];
    return <Select {...common} value={value} options={options} onChange={onInput} />;
  }
  const fallback = formatDefault(parameter);
  if (connections.length > 0) {
    const options = listConnections(connections, value, fallback, isRequired(parameter));
    return <Select {...common} hint="a connection of the surface" value={value} options={options} onChange={onInput} />;
  }
  return (
    <Field
      {...common}
      mono={input !== "text" || parameter.type === "timespan"}
      value={value}
      onInput={onInput}
      placeholder={fallback === "" ? (parameter.type === "string" && !isRequired(parameter) ? "any" : "") : fallback}
    />
  );
}
