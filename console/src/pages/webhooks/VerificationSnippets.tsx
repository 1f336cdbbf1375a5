import { useState } from "preact/hooks";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Tabs } from "@/components/Tabs.tsx";
import { Panel } from "@/shell/Page.tsx";
import { buildPythonReceiver, buildTypescriptReceiver, findPort } from "./snippets.ts";
import css from "./Webhooks.module.css";

const LANGUAGES = [
  { id: "python", title: "Python", build: buildPythonReceiver, install: "pip install standardwebhooks" },
  { id: "typescript", title: "TypeScript", build: buildTypescriptReceiver, install: "npm install standardwebhooks" },
] as const;
type LanguageId = (typeof LANGUAGES)[number]["id"];

/** Programs that receive the messages of a webhook and verify their signatures. */
export function VerificationSnippets({ url }: { url: string }) {
  const [chosen, setChosen] = useState<LanguageId>("python");
  const language = LANGUAGES.find(({ id }) => id === chosen) ?? LANGUAGES[0];
  return (
    <Panel title="Verify the messages">
      <p class={css.soft}>
        The signatures follow Standard Webhooks, so any of its libraries verifies them. Reply within 15 seconds with a
        status from 200 to 299, and do the work afterwards. A message can arrive twice.
      </p>
      <Tabs label="Language" tabs={LANGUAGES} selected={chosen} onSelect={setChosen}>
        <div class={css.stack}>
          <CodeBlock code={language.build(findPort(url))} label={`Receiver in ${language.title}`} />
          <p class={css.soft}>
            Install the package with <code>{language.install}</code>, and set the environment variable WEBHOOK_SECRET.
          </p>
        </div>
      </Tabs>
    </Panel>
  );
}
