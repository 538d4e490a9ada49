/**
 * A limit that the engine does not have, as a feature in one file.
 *
 * @module
 */
import type { Middleware } from "@jizai/jizai";

/** Ends a run before a turn when it has used `tokens` tokens. The usage is saved with the run, so it counts after a pause too. */
export function tokenCap(tokens: number): Middleware {
  return {
    name: "token_cap",
    async turn({ run }, next) {
      if (run.usage.input + run.usage.output >= tokens) throw run.end(`${tokens} tokens are used`, { as: "limit" });
      return await next();
    },
  };
}
