/**
 * Callers: who asks, and what comes with their request.
 *
 * @module
 */
import type { Context } from "hono";
import type { Asker } from "../session/record/host.ts";
import type { Settled } from "./options.ts";
import { invalid } from "../protocol/shape.ts";
import { Refusal, shutdown } from "./refusal.ts";

/** Who asks, in a request. */
export interface Caller extends Asker {
  /** Aborts where they leave before they are answered, as far as the platform says so. */
  readonly leaving: AbortSignal;
}

/** Who sent a request; throws where nobody is served any more, or it is not known whose it is. */
export async function callerOf(c: Context, { owner, vars, signal }: Settled): Promise<Caller> {
  if (signal?.aborted) throw shutdown();
  const mine = await owner?.(c);
  if (owner && !mine) throw new Refusal(403, "nobody", "Cannot serve this: it is not known whose it is");
  return {
    owner: mine,
    get leaving() { // Deno warns whoever asks for it, and few do
      return c.req.raw.signal;
    },
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

/** The most characters of an id that is asked for: a database takes keys of 2 KiB, and a character three bytes. */
const longestId = 500;

/** An id that is asked for; throws where it is too long to be kept. */
export function idOf(id = ""): string {
  if (id.length > longestId) throw invalid("id", `${longestId} characters at most`);
  return id;
}
