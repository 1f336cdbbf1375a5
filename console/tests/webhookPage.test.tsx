import { beforeEach, expect, test, vi } from "vitest";
import { ApiError, createUnreachableError } from "../src/api/problem.ts";
import { WebhookPage } from "../src/pages/webhooks/WebhookPage.tsx";
import { session } from "../src/session/index.ts";
import { findButton, mountRoot, press, root, show, submit, typeInto } from "./mounted.ts";

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

const LISTS = {
  ...{ deliveries: [], cursor: null, surfaces: [], dataConnections: [] },
  eventTypes: [{ type: "alert.fired", description: "" }],
};
const findInput = () => [...root.querySelectorAll<HTMLInputElement>("input")].find((each) => each.value === "Stored");

/** Shows the page, and types a description. */
async function change(): Promise<void> {
  await show(<WebhookPage id="w" />);
  await vi.waitFor(() => expect(findInput()).toBeDefined());
  await typeInto(findInput(), "Typed");
}

beforeEach(() => {
  vi.spyOn(session.api, "get").mockImplementation((path: string) =>
    Promise.resolve((path.endsWith("/webhooks/w") ? WEBHOOK : LISTS) as never),
  );
});

test("the rotation of the secret keeps what was typed into the form of the webhook", async () => {
  vi.spyOn(session.api, "post").mockResolvedValue({ ...WEBHOOK, etag: '"2"', secret: "whsec_new" });
  const put = vi.spyOn(session.api, "put").mockReturnValue(new Promise(() => undefined));
  await change();
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

test("a webhook that another person removed has no new secret, and no deliveries that can be sent", async () => {
  vi.spyOn(session.api, "put").mockRejectedValue(
    new ApiError({ status: 412, code: "PRECONDITION_FAILED", detail: "" }),
  );
  await change();
  await submit();
  await vi.waitFor(() => expect(findButton("Reload")).toBeDefined());
  expect(findButton("Send a test event")).toBeDefined();
  vi.spyOn(session.api, "get").mockRejectedValue(new ApiError({ status: 404, code: "WEBHOOK_NOT_FOUND", detail: "" }));
  await press("Reload");
  await vi.waitFor(() => expect(root.textContent).toContain("Another person removed this webhook"));
  expect([findButton("Rotate the secret"), findButton("Send a test event")]).toEqual([undefined, undefined]);
});

test("after a lost reply, the rotation keeps its idempotency key when its dialog or the page opens again", async () => {
  const post = vi.spyOn(session.api, "post").mockRejectedValue(createUnreachableError());
  const rotate = async (attempts: number) => {
    await press("Rotate the secret");
    await press("Create a new secret");
    await vi.waitFor(() => expect(post).toHaveBeenCalledTimes(attempts));
    await vi.waitFor(() => expect(root.querySelector("dialog [aria-busy=true]")).toBeNull());
  };
  await change();
  await rotate(1);
  await press("Cancel");
  await rotate(2);
  await show(null);
  await change();
  post.mockResolvedValue({ ...WEBHOOK, secret: "whsec_new" });
  await rotate(3);
  await rotate(4);
  const [first, second, third, fourth] = post.mock.calls.map(([, , options]) => options?.headers?.["Idempotency-Key"]);
  expect([second, third]).toEqual([first, first]);
  expect(fourth).not.toBe(first);
});
