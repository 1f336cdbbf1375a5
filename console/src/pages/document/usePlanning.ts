import { useEffect, useRef, useState } from "preact/hooks";
import { api, isAbort } from "@/api/index.ts";
import { applyDocument, type Plan, planDocument } from "@/api/workspaceDocument.ts";

interface State {
  text: string;
  /** Text at the last load or application; a difference is unsaved. */
  saved: string;
  busy: "planning" | "applying" | undefined;
  /** Plan of the current text. */
  plan: Plan | undefined;
  /** The plan that was applied last. */
  applied: Plan | undefined;
  error: unknown;
}

/** A document that a person edits, plans and applies. */
export interface Planning extends State {
  /** Replaces the text, which ends its plan. */
  edit: (text: string) => void;
  /** Replaces the text by one that needs no warning before it is lost. */
  load: (text: string) => void;
  makePlan: () => Promise<void>;
  apply: () => Promise<void>;
}

const EMPTY: State = {
  text: "",
  saved: "",
  busy: undefined,
  plan: undefined,
  applied: undefined,
  error: undefined,
};

/** Holds a document with its plan. An error never changes the text. */
export function usePlanning(): Planning {
  const [state, setState] = useState(EMPTY);
  const work = useRef<AbortController>(undefined);
  useEffect(() => () => work.current?.abort(), []);
  const change = (some: Partial<State>) => setState((before) => ({ ...before, ...some }));
  const replace = (some: Partial<State>) => {
    work.current?.abort();
    change({ plan: undefined, applied: undefined, error: undefined, busy: undefined, ...some });
  };
  const makePlan = async () => {
    const abort = new AbortController();
    work.current?.abort();
    work.current = abort;
    change({ busy: "planning", plan: undefined, applied: undefined, error: undefined });
    try {
      change({ plan: await planDocument(api, state.text, abort.signal), busy: undefined });
    } catch (error) {
      if (!isAbort(error)) {
        change({ error, busy: undefined });
      }
    }
  };
  const apply = async () => {
    if (!state.plan) {
      return;
    }
    change({ busy: "applying", error: undefined });
    try {
      const applied = await applyDocument(api, state.text, state.plan.planTag);
      change({ applied, plan: undefined, saved: state.text, busy: undefined });
    } catch (error) {
      change({ error, plan: undefined, busy: undefined });
    }
  };
  return {
    ...state,
    edit: (text) => replace({ text }),
    load: (text) => replace({ text, saved: text }),
    makePlan,
    apply,
  };
}
