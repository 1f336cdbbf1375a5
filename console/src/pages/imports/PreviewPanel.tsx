import type { ImportPreview } from "@/api/imports.ts";
import { Notice } from "@/components/Notice.tsx";
import { formatPlain, formatQuantity } from "@/format.ts";
import css from "./Imports.module.css";
import { nameFields } from "./MappingFields.tsx";

const SHOWN = 10;

/** The first messages of a file as they would be stored, and its problems. */
export function PreviewPanel({ preview }: { preview: ImportPreview }) {
  const { messages, problems } = preview;
  return (
    <>
      {problems.length > 0 && (
        <Notice kind="warn" title={`${formatQuantity(problems.length, "problem")} in the first rows`}>
          <ul class={css.problems}>
            {problems.slice(0, SHOWN).map(({ row, message }) => (
              <li key={`${row} ${message}`}>
                {row === null ? "" : `Row ${row}: `}
                {nameFields(message)}
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {messages.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must reach a scrolling area
        <section class={css.preview} tabIndex={0} aria-label="Preview of the first messages">
          <table aria-label="First messages">
            <thead>
              <tr>
                <th scope="col">Time (UTC)</th>
                <th scope="col">Device</th>
                <th scope="col">Payload</th>
              </tr>
            </thead>
            <tbody>
              {messages.slice(0, SHOWN).map((message) => (
                <tr key={message.messageId}>
                  <td>{message.timestamp}</td>
                  <td>{message.deviceId}</td>
                  <td>
                    <code>{formatPlain(message.payload)}</code>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}
