/**
 * Checks the final answer.
 *
 * @module
 */
import { continueWith, type Middleware, state, type StopContext, textOf, user } from "../../mod.ts";

/** What a check finds: `true` or nothing where the answer is good, else what the model is told about it. */
export type Verdict = true | undefined | string;

/** How an answer is verified. */
export interface VerifyOptions {
  /** How often one run sends an answer back. Default: 2. */
  readonly attempts?: number;
  /** Its name, and what its attempts are counted under: two checks of one agent need two. Default: "verify". */
  readonly name?: string;
}

/**
 * Sends the final answer back to the model, with what is wrong, until `check` finds it good. Hooks after it are asked first.
 * After the last attempt, or where the run may not go on, the answer stands and a notice says that it was not verified.
 * Throws a `RangeError` where `attempts` is less than 0.
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
  { attempts = 2, name = "verify" }: VerifyOptions = {},
): Middleware<V> {
  if (!(attempts >= 0)) throw new RangeError(`Cannot verify in ${attempts} attempts: expected 0 or more`);
  const sent = state(`${name}.sent`, () => 0);
  return {
    name,
    async stop(ctx, next) {
      const beneath = await next();
      if (beneath.type !== "finish") return beneath;
      const verdict = await check(textOf(ctx.message), ctx);
      if (typeof verdict !== "string") return beneath;
      if (sent.get(ctx) >= attempts || ctx.continuations >= ctx.limit) {
        ctx.emit({ type: "notice", text: "The answer was not verified." });
        return beneath;
      }
      sent.update(ctx, (times) => times + 1);
      return continueWith(user(verdict, name));
    },
  };
}
