import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Tabs } from "@/components/Tabs.tsx";
import { buildHref } from "@/router/route.ts";
import css from "./CopyAs.module.css";
import { buildCurl } from "./curl.ts";
import { buildGrafana } from "./grafana.ts";
import { buildPowerBi } from "./powerBi.ts";
import { buildPython } from "./python.ts";
import { type Subject, TOKEN } from "./text.ts";
import { buildTypescript } from "./typescript.ts";

const FORMS = [
  { id: "curl", title: "curl", make: buildCurl },
  { id: "python", title: "Python", make: buildPython },
  { id: "typescript", title: "TypeScript", make: buildTypescript },
  { id: "power-bi", title: "Power BI", make: buildPowerBi },
  { id: "grafana", title: "Grafana", make: buildGrafana },
] as const;

type FormId = (typeof FORMS)[number]["id"];

const ENVIRONMENT = "It reads the token from the environment variable TOKEN.";
const NOTES: Record<FormId, ComponentChildren> = {
  curl: ENVIRONMENT,
  python: `It needs Python 3 and no packages. ${ENVIRONMENT}`,
  typescript: `For Node.js 18 or later, Deno or Bun. ${ENVIRONMENT}`,
  "power-bi": `In Power BI: Transform data, New source, Blank query, Advanced editor; access to the service is "Anonymous". Replace ${TOKEN} with a token, preferably as a parameter of the report.`,
  grafana:
    "For the Infinity data source: give it the authentication method Bearer token and this service as an allowed host. The data source stores the token. Paste the address into a query's URL, or this JSON into the panel's targets.",
};

/** A button that shows the same call for other programs. */
export function CopyAs({ ask, columns }: Omit<Subject, "origin">) {
  const [open, setOpen] = useState(false);
  const [form, setForm] = useState<FormId>("curl");
  const subject = { ask, columns, origin: window.location.origin };
  const make = FORMS.find((each) => each.id === form)?.make ?? buildCurl;
  return (
    <>
      <Button icon="copy" onClick={() => setOpen(true)}>
        Copy as…
      </Button>
      {open && (
        <Dialog title="Call this query from another program" wide onClose={() => setOpen(false)}>
          <Tabs label="Program" tabs={FORMS} selected={form} onSelect={setForm}>
            <div class={css.panel}>
              <CodeBlock code={make(subject)} label={`The call for ${form}`} />
              <p class={css.note}>{NOTES[form]}</p>
              <p class={css.note}>
                Create a token with only the necessary rights under <a href={buildHref("keys")}>Keys and tokens</a>.
              </p>
            </div>
          </Tabs>
        </Dialog>
      )}
    </>
  );
}
