import { issueToken } from "@/api/keys.ts";
import { ApiError } from "@/api/problem.ts";
import { type EntraReply, redeemCode } from "@/session/entra.ts";
import { session } from "@/session/index.ts";
import { ACCESS_RIGHTS, type Right } from "@/session/rights.ts";
import { createClient, forgetRecentSignIn, openSignIn } from "./credential.ts";

const SESSION_MINUTES = 480;

/**
 * Continues a signature after the sign-in with Entra ID: the earlier session goes on, or a new one begins if it ended.
 * @returns why the sign-in failed, if the earlier session continues
 */
export async function continueSignature(reply: EntraReply): Promise<ApiError | undefined> {
  try {
    const right = ACCESS_RIGHTS.find((each) => each === reply.pending?.signs) as Right;
    const entra = await redeemCode(reply);
    // Before the session: its pages look for the sign-in when they open.
    const { principal } = await openSignIn(entra.token, right);
    await session.restore();
    if (session.state.state !== "in") {
      const issued = await issueToken(createClient(entra.token), SESSION_MINUTES);
      await session.signInWithToken(issued.Token);
    } else if (session.state.who.principal !== principal) {
      forgetRecentSignIn();
      return createOtherPersonError(principal);
    }
    return undefined;
  } catch (error) {
    await restoreIfNeeded();
    return error instanceof ApiError ? error : undefined;
  }
}

async function restoreIfNeeded(): Promise<void> {
  if (session.state.state === "starting") {
    await session.restore();
  }
}

function createOtherPersonError(principal: string): ApiError {
  const detail = `${principal} signed in at Entra ID, but you are signed in as another person. Nothing was signed.`;
  return new ApiError({ status: 0, code: "OTHER_PERSON", detail });
}
