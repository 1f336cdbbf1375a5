import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api, formatPath, readBody } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { CopyButton } from "@/components/CopyButton.tsx";
import { saveFile } from "@/components/saveFile.ts";
import { showToast } from "@/components/toasts.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Developers.module.css";

/** Where things stand that programs are told. */
export function Addresses({ workspace }: { workspace: string }) {
  const origin = window.location.origin;
  return (
    <Panel title="Addresses">
      <table class={css.table}>
        <tbody>
          <Row title="REST" address={`${origin}/oi-api`} />
          <Row title="GraphQL" address={`${origin}${formatPath`/v1/${workspace}/graphql`}`} />
          <Row title="MCP" address={`${origin}/oi-api/mcp`} />
          <Row title="Live stream" address={`${origin.replace(/^http/, "ws")}/oi-api/live-stream`} />
          <Row title="Description of your operations" address={`${origin}/oi-api/openapi`}>
            <Description />
          </Row>
          <Row title="Keys that sign tokens" address={`${origin}/.well-known/jwks.json`} open />
          <Row title="Key that signs checkpoints" address={`${origin}/.well-known/oi-checkpoint-key`} open />
        </tbody>
      </table>
    </Panel>
  );
}

interface RowProps {
  title: string;
  address: string;
  /** Public, so that a browser shows it. */
  open?: boolean;
  children?: ComponentChildren;
}

function Row({ title, address, open = false, children }: RowProps) {
  return (
    <tr>
      <th scope="row">{title}</th>
      <td>{open ? <a href={address}>{<code>{address}</code>}</a> : <code>{address}</code>}</td>
      <td class={css.act}>
        {children}
        <CopyButton text={address} of={`the address: ${title}`} />
      </td>
    </tr>
  );
}

/** Saves the OpenAPI document, which needs the token: a link alone would not carry it. */
function Description() {
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      const reply = await api.fetch("GET", "/oi-api/openapi");
      saveFile(await readBody(reply, () => reply.blob()), "openapi.json");
    } catch (error) {
      showToast(`No file came: ${error instanceof Error ? error.message : String(error)}`, "bad");
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button kind="quiet" icon="download" label="Save the OpenAPI document" busy={busy} onClick={() => void save()} />
  );
}
