import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Select } from "@/components/Field.tsx";
import { Tabs } from "@/components/Tabs.tsx";
import css from "./Keys.module.css";
import { buildCurl, buildNodeRed, buildPythonClient, buildTelegraf, suggestDevice } from "./telemetrySnippets.ts";

const FORMS = [
  { id: "curl", title: "curl", build: buildCurl },
  { id: "telegraf", title: "Telegraf", build: buildTelegraf },
  { id: "node-red", title: "Node-RED", build: buildNodeRed },
  { id: "python", title: "Python", build: buildPythonClient },
] as const;

type FormId = (typeof FORMS)[number]["id"];

const NOTES: Record<FormId, ComponentChildren> = {
  curl: "Sends one message. The body can also be an array of up to 500 messages.",
  telegraf:
    "Every metric becomes a message with its fields. To send the name of the host as the device ID, replace the device ID in the configuration with tags.host.",
  "node-red":
    "Choose Import in the menu, and paste. Set the key as an environment variable of the flow or of Node-RED.",
  python: "Install the client package with pip, from the folder client of this service's repository.",
};

interface Props {
  keyId: string;
  connections: readonly string[];
  devices: readonly string[] | null | undefined;
}

/** Texts to copy for programs that send telemetry with a bound key; they read the key from the environment. */
export function TelemetrySnippets({ keyId, connections, devices }: Props) {
  const [chosen, setChosen] = useState(connections[0] ?? "");
  const [form, setForm] = useState<FormId>("curl");
  const build = FORMS.find((each) => each.id === form)?.build ?? buildCurl;
  const device = suggestDevice(chosen, devices);
  const code = build({ origin: window.location.origin, keyId, connection: chosen, device });
  return (
    <div class={css.list}>
      {connections.length > 1 && (
        <Select
          label="Connection"
          value={chosen}
          options={connections.map((value) => ({ value, label: value }))}
          onChange={setChosen}
        />
      )}
      <Tabs label="Program that sends telemetry" tabs={FORMS} selected={form} onSelect={setForm}>
        <div class={css.list}>
          <CodeBlock code={code} label={`Telemetry with ${form}`} />
          <p class={css.soft}>{NOTES[form]} It reads the API key from the environment variable OI_KEY.</p>
          <p class={css.soft}>
            If the connection reads these values from other properties, use their names instead of deviceId, timestamp
            and messageId. The page of the connection shows the properties.
          </p>
        </div>
      </Tabs>
    </div>
  );
}
