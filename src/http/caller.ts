/**
 * Callers: who asks, and what comes with their request.
 *
 * @module
 */
import type { Context } from "hono";
import type { Session } from "../protocol/session.ts";
import type { ClientGone, Settled } from "./options.ts";
import { Refusal, shutdown } from "./refusal.ts";

/** Who asks. */
export interface Caller {
  /** Whose sessions and runs they reach: their own alone. Nothing where nobody looks at that. */
  readonly owner: string | undefined;
  /** What becomes of a run that they begin, once they have gone. */
  readonly onGone: ClientGone;
  /** Aborts where they leave before they are answered, as far as the platform says so. */
  readonly leaving: AbortSignal;
  /** What the agent is told of their request. */
  vars(): Promise<unknown>;
  /** Has the platform wait for `work`, which the response does not, where it has to be asked for that. */
  outlive(work: Promise<unknown>): void;
}

/** Who sent a request; throws where nobody is served any more, or it is not known whose it is. */
export async function callerOf(c: Context, { owner, vars, onClientGone, signal }: Settled): Promise<Caller> {
  if (signal?.aborted) throw shutdown();
  const mine = await owner?.(c);
  if (owner && !mine) throw new Refusal(403, "nobody", "Cannot serve this: it is not known whose it is");
  return {
    owner: mine,
    onGone: typeof onClientGone === "function" ? await onClientGone(c) : onClientGone,
    leaving: c.req.raw.signal,
    vars: async () => await vars?.(c),
    outlive(work) {
      try {
        c.executionCtx.waitUntil(work);
      } catch {
        return; // there is no platform to ask
      }
    },
  };
}

/** The session of this id, where it is the caller's. */
export async function sessionFor({ owner }: Caller, { store }: Settled, id: string): Promise<Session | undefined> {
  const session = await store?.load(id);
  return owner === undefined || session?.owner === owner ? session : undefined;
}
