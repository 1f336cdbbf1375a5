import { expect, test, vi } from "vitest";
import { RevokeToken } from "../../src/pages/keys/RevokeToken.tsx";
import { session } from "../../src/session/index.ts";
import { signIn } from "../amendments/pages.ts";
import { mountRoot, press, root, show, submit, typeText } from "../mounted.ts";

mountRoot();

const ID = "0af7651916cd43dd8448eb211c80319c";
const makeToken = (claims: object) => `e30.${btoa(JSON.stringify(claims))}.c2ln`;

test.each([
  ["an API key", `oik_ABCDEFGH_${"s".repeat(43)}`],
  ["a token without an ID", makeToken({ sub: "ann@t" })],
  ["a token whose ID has another form", makeToken({ jti: "oik_ABCDEFGH_secret" })],
  ["a part of a token", "eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOi"],
])("%s is rejected in the form for tokens, because its address would contain a secret", async (_, text) => {
  signIn([]);
  const remove = vi.spyOn(session.api, "delete");
  await show(<RevokeToken />);
  await typeText(text);
  await submit();
  expect(root.querySelector("dialog")).toBeNull();
  expect(root.querySelector("[role=alert]")?.textContent).toContain("neither a token of this workspace nor its ID");
  expect(remove).not.toHaveBeenCalled();
});

test.each([ID, makeToken({ jti: ID })])("a token is revoked by its ID, also if it is pasted", async (text) => {
  signIn([]);
  const remove = vi.spyOn(session.api, "delete").mockResolvedValue();
  await show(<RevokeToken />);
  await typeText(text);
  await submit();
  await press("Revoke permanently");
  expect(remove).toHaveBeenCalledWith(`/workspace/api/keys/jwt/${ID}`);
});
