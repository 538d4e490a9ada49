/**
 * Effort: OpenAI's newer models take tools over this API only where they may not reason, and say so in their refusal.
 *
 * @module
 */
import type { Fields } from "../fields.ts";
import { ModelError, type ModelEvent } from "../model.ts";

/** Asks with more fields than the request has. */
type Asking = (more: Fields) => AsyncIterable<readonly ModelEvent[]>;

/** Asks as it is told to, until it is refused for this reason; from then on without reasoning. */
export function obliging(): (asking: Asking) => AsyncGenerator<readonly ModelEvent[]> {
  let refused = false;
  return async function* (asking) {
    try {
      if (!refused) return yield* asking({});
    } catch (error) {
      if (!isRefusal(error)) throw error;
      refused = true;
    }
    yield* asking({ reasoning_effort: "none" });
  };
}

function isRefusal(error: unknown): boolean {
  return error instanceof ModelError && error.status === 400 && /reasoning_effort to 'none'/.test(error.message);
}
