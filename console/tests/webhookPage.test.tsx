import { expect, test, vi } from "vitest";
import { WebhookPage } from "../src/pages/webhooks/WebhookPage.tsx";
import { session } from "../src/session/index.ts";
import { mountRoot, press, root, show, submit, typeInto } from "./mounted.ts";

const WEBHOOK = {
  ...{
    id: "w",
    url: "https://plant.example/hook",
    format: "standard",
    description: "Stored",
    eventTypes: ["alert.fired"],
  },
  ...{ filter: {}, enabled: true, disabledReason: null, createdAt: "2026-01-05T08:00:00Z", createdBy: "ann@t" },
  etag: '"1"',
};

mountRoot();

test("the rotation of the secret keeps what was typed into the form of the webhook", async () => {
  vi.spyOn(session.api, "get").mockImplementation((path: string) => {
    const lists = {
      deliveries: [],
      cursor: null,
      eventTypes: [{ type: "alert.fired", description: "" }],
      surfaces: [],
      dataConnections: [],
    };
    return Promise.resolve((path.endsWith("/webhooks/w") ? WEBHOOK : lists) as never);
  });
  vi.spyOn(session.api, "post").mockResolvedValue({ ...WEBHOOK, etag: '"2"', secret: "whsec_new" });
  const put = vi.spyOn(session.api, "put").mockReturnValue(new Promise(() => undefined));
  const find = () => [...root.querySelectorAll<HTMLInputElement>("input")].find((each) => each.value === "Stored");
  await show(<WebhookPage id="w" />);
  await vi.waitFor(() => expect(find()).toBeDefined());
  await typeInto(find(), "Typed");
  await press("Rotate the secret");
  await press("Create a new secret");
  await vi.waitFor(() => expect(root.textContent).toContain("whsec_new"));
  expect(root.querySelector("dialog")).toBeNull();
  await press("I have copied it");
  await submit();
  await vi.waitFor(() => expect(put).toHaveBeenCalled());
  expect(put.mock.calls[0]?.[1]).toMatchObject({ description: "Typed" });
  expect(put.mock.calls[0]?.[2]).toEqual({ headers: { "If-Match": '"2"' } });
});
