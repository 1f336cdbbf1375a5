import type { ComponentChildren } from "preact";
import type { ApiKey } from "@/api/keys.ts";
import { VisibleText } from "@/components/VisibleText.tsx";

/** Returns the connections and devices of a bound key as rows; no rows for a key that is not bound. */
export function listBinding(
  key: Pick<ApiKey, "connections" | "devices">,
): { label: string; value: ComponentChildren }[] {
  if (!key.connections) {
    return [];
  }
  return [
    { label: "Connections", value: <code>{key.connections.join(" ")}</code> },
    {
      label: "Device IDs",
      value: key.devices ? (
        <code>
          <VisibleText text={key.devices.join(" ")} />
        </code>
      ) : (
        "all"
      ),
    },
  ];
}
