/**
 * Checks the final answer of a run.
 *
 * @module
 */
import { continueWith, type Middleware, state, type StopContext, textOf, user } from "../../mod.ts";
import { expectNames } from "../../src/core/kit.ts";

/** Verdict of a check: `true` or `undefined` if the answer is good, else the message for the model. */
export type Verdict = true | undefined | string;

/** Options of `verify()`. */
export interface VerifyOptions {
  /** Number of times that a run sends an answer back. Default: 2. */
  readonly attempts?: number;
  /** Name of the middleware, under which the attempts are counted. Two checks in one agent need two names. Default: "verify". */
  readonly name?: string;
}

/**
 * Sends the final answer back to the model, with a message, until `check` accepts it. Later hooks decide first. After the last attempt, or if the run may not
 * continue, the answer stands, and a notice says that it was not verified.
 *
 * Throws a `RangeError` if `attempts` is negative.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { verify } from "@jizai/jizai/middleware/verify";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const brief = verify((text) => text.length <= 20 || "Say it in 20 characters.");
 * const model = scripted("Well, that depends on many things.", "It depends.");
 *
 * const { text } = await agent({ model, use: [brief] }).run("Tabs or spaces?").result;
 * assertEquals(text, "It depends.");
 * ```
 */
export function verify<V = unknown>(
  check: (text: string, ctx: StopContext<V>) => Verdict | Promise<Verdict>,
  options: VerifyOptions = {},
): Middleware<V> {
  expectNames("Cannot create verify()", options, ["attempts", "name"]);
  const { attempts = 2, name = "verify" } = options;
  if (!(attempts >= 0)) throw new RangeError(`Cannot create verify(): \`attempts\` is ${attempts}; expected 0 or more`);
  const sent = state(`${name}.sent`, () => 0);
  return {
    name,
    async stop(ctx, next) {
      const decision = await next();
      if (decision.type !== "finish") return decision;
      const verdict = await check(textOf(ctx.message), ctx);
      if (typeof verdict !== "string") return decision;
      if (sent.get(ctx) >= attempts || ctx.continuations >= ctx.limit) {
        ctx.emit({ type: "notice", text: "The answer was not verified." });
        return decision;
      }
      sent.update(ctx, (times) => times + 1);
      return continueWith(user(verdict, name));
    },
  };
}
