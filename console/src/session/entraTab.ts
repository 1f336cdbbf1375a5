// Sign-in with Entra ID in another tab, so that this tab keeps everything typed. The tabs share no secret: only the tab
// that began the sign-in has the verifier, without which the code is useless.
import { buildAuthorizeAddress, createPending, type EntraConfig, type EntraReply } from "./entra.ts";

const CHANNEL = "workspace-console-entra";
const ACCEPT_MS = 1500;

/** A message between the tabs: the parameters of a reply, or the state of the reply that a tab accepted. */
interface Message {
  reply?: string;
  accepted?: string;
}

/**
 * Opens Entra ID in a new tab and waits for its reply.
 * @param signal ends the wait, so that no later reply is accepted
 * @throws Error if the browser blocks new tabs, or an AbortError after the end of the wait
 */
export async function signInInNewTab(config: EntraConfig, isNew: boolean, signal: AbortSignal): Promise<EntraReply> {
  // Opened before anything asynchronous, because browsers block tabs that no click opens.
  const tab = window.open("", "_blank");
  if (!tab) {
    throw new Error("The browser blocked the new tab. Allow pop-ups of this page, or sign in with an API key.");
  }
  const pending = createPending(config, isNew ? {} : undefined);
  tab.location.href = await buildAuthorizeAddress(pending, isNew);
  return { given: await waitForReply(pending.state, signal), pending };
}

/** Offers a reply of Entra ID to the other tabs; tells whether one of them began this sign-in and accepted it. */
export function offerReply({ given }: EntraReply): Promise<boolean> {
  const channel = new BroadcastChannel(CHANNEL);
  return new Promise((resolve) => {
    const end = (isAccepted: boolean) => {
      clearTimeout(timer);
      channel.close();
      resolve(isAccepted);
    };
    const timer = setTimeout(() => end(false), ACCEPT_MS);
    channel.onmessage = ({ data }: MessageEvent<Message>) => data.accepted === given.get("state") && end(true);
    channel.postMessage({ reply: given.toString() } satisfies Message);
  });
}

async function waitForReply(state: string, signal: AbortSignal): Promise<URLSearchParams> {
  signal.throwIfAborted();
  const channel = new BroadcastChannel(CHANNEL);
  return await new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => {
      channel.close();
      reject(signal.reason);
    });
    channel.onmessage = ({ data }: MessageEvent<Message>) => {
      const given = new URLSearchParams(data.reply ?? "");
      if (given.get("state") === state) {
        channel.postMessage({ accepted: state } satisfies Message);
        channel.close();
        resolve(given);
      }
    };
  });
}
