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
 * @throws Error if the browser blocks new tabs
 */
export async function signInInNewTab(config: EntraConfig, isNew: boolean): Promise<EntraReply> {
  // Opened before anything asynchronous, because browsers block tabs that no click opens.
  const tab = window.open("", "_blank");
  if (!tab) {
    throw new Error("The browser blocked the new tab. Allow pop-ups of this page, or sign in with an API key.");
  }
  const pending = createPending(config, isNew ? {} : undefined);
  const found = waitForReply(pending.state);
  tab.location.href = await buildAuthorizeAddress(pending, isNew);
  return { given: await found, pending };
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

function waitForReply(state: string): Promise<URLSearchParams> {
  const channel = new BroadcastChannel(CHANNEL);
  return new Promise((resolve) => {
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
