/**
 * Limits the tool calls of a run.
 *
 * @module
 */
import { type Middleware, skipped, state } from "@jizai/jizai";

/** Options of `myMiddleware()`. */
export interface Options {
  /** The number of calls that one run may make. Default: 20. */
  readonly calls?: number;
}

/** Skips the calls of a run that exceed a limit, and tells the model. */
export function myMiddleware({ calls = 20 }: Options = {}): Middleware {
  const used = state("my-middleware.used", () => 0); // one number for each run, not for each agent
  return {
    name: "my-middleware",
    interfaceVersion: 1, // that of Jizai's middleware; an agent with another one rejects it by name
    async tool(ctx, next) {
      if (used.update(ctx, (count) => count + 1) > calls) return skipped("There are no calls left in this run.");
      return await next();
    },
  };
}
