import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api, formatPath, readBody } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { CopyButton } from "@/components/CopyButton.tsx";
import { saveFile } from "@/components/saveFile.ts";
import { showToast } from "@/components/toasts.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Developers.module.css";

/** Addresses for programs. */
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
          <Row title="OpenAPI document of your operations" address={`${origin}/oi-api/openapi`}>
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
  /** True for public addresses, which become links. */
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

/** A button for the OpenAPI document; a plain link would not send the token. */
function Description() {
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      const reply = await api.fetch("GET", "/oi-api/openapi");
      saveFile(await readBody(reply, () => reply.blob()), "openapi.json");
    } catch (error) {
      showToast(`The file could not be downloaded: ${error instanceof Error ? error.message : String(error)}`, "bad");
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button kind="quiet" icon="download" label="Save the OpenAPI document" busy={busy} onClick={() => void save()} />
  );
}
