import { expect, test, vi } from "vitest";
import { Entity } from "../../src/pages/amendments/Entity.tsx";
import { session } from "../../src/session/index.ts";
import { mountRoot, root, show } from "../mounted.ts";
import { makeAmendment, makeReply, signIn } from "./pages.ts";

mountRoot();

test("the timeline shows no amendment as pending whose decision is not among its oldest records", async () => {
  signIn();
  const headers = new Headers({ "x-provenance-has-more": "true" });
  const request = vi.spyOn(session.api, "request");
  request.mockResolvedValueOnce({ ...makeReply([makeAmendment(1), makeAmendment(3)]), headers });
  request.mockResolvedValueOnce(makeReply([makeAmendment(3)]));
  await show(<Entity scope="s" entity="p" onOpen={() => undefined} />);
  await vi.waitFor(() => expect(root.querySelectorAll("article")).toHaveLength(2));
  const statuses = [...root.querySelectorAll("article header")].map((header) => header.lastElementChild?.textContent);
  expect(statuses).toEqual(["decided", "pending"]);
  expect(request.mock.lastCall?.[3]?.query).toMatchObject({ status: "pending", entityId: "p", toSequence: 3 });
});
