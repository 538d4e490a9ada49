/**
 * Runs hooks that were written for yoi's `llm-worker`.
 *
 * @module
 */
import type { YoiHook } from "./hooks.ts";
import { hooksOf, type Order } from "./middleware.ts";
import { atNeededPoints, expectNoOption, type Needs, warnSilent } from "../kit/adapter.ts";
import type { Middleware } from "../../../mod.ts";
import { expectChoice, expectNames, isObject } from "../../../src/core/kit.ts";

export {
  type ContentPart,
  type Given,
  type HookOptions,
  Message,
  OnPromptSubmitResult,
  OnTurnEndResult,
  type PostToolCallContext,
  PostToolCallResult,
  PreLlmRequestResult,
  PreToolCallResult,
  type Role,
  type ToolCall,
  type ToolCallContext,
  type ToolMeta,
  type ToolResult,
  type YoiHook,
} from "./hooks.ts";
export { type OpenCall, openCalls } from "./calls.ts";

/** Options of `yoi_hooks()`. */
export interface YoiOptions {
  /** The order of hooks at `post_tool_call`, `on_turn_end` and `on_abort`: as listed, or the last first, as in an onion. Default: "listed", as in yoi. */
  readonly outward?: "listed" | "onion";
}

/** The methods that need each point. */
const needs: Needs<keyof YoiHook> = {
  session: ["pre_tool_call", "post_tool_call", "on_abort"],
  prompt: ["on_prompt_submit"],
  model: ["pre_llm_request", "pre_tool_call", "post_tool_call"],
  tool: ["pre_tool_call", "post_tool_call"],
  approval: ["pre_tool_call"],
  stop: ["on_turn_end"],
  error: ["on_abort"],
  abort: ["on_abort"],
};
const events = [...new Set(Object.values(needs).flat())];

/**
 * Runs hooks that were written for yoi's `llm-worker`: objects with some of its six methods, one after another in their order. Each receives a draft with the
 * changes of those before it, and its own changes count. An invalid answer is ignored with a `warning`. A denial in the form of another system, such as
 * `{ decision: "block" }`, refuses the prompt or denies the call all the same, and so does a question about a call.
 *
 * - `Cancel` refuses the prompt, which is not stored; before a request it ends the run as cancelled.
 * - `Skip` means "not now": the call is answered as skipped, listed in `openCalls()`, reported at the end of the run by an event `data` named `yoi_hooks.open`,
 *   and submitted again by the next run of the session, as a new call with a new id, before the model is asked.
 * - `Pause` pauses the run before the calls of the batch run. On resume, every call of the batch enters again, in a new batch.
 * - `Paused` pauses the run before it finishes. On resume, the model is asked again with the reply of a person.
 * - `Abort` fails the run. The results of the batch are dropped: all of its calls become open calls, also those that have run.
 * - `ContinueWithMessages` continues with messages of the user. Later hooks are not asked.
 *
 * The document of yoi leaves eight questions open. The answers here:
 *
 * 1. A hook that throws fails the run before the calls of its batch run, and `on_abort` fires. With `optional()`, the run continues without the hook.
 * 2. The order decides: each hook sees the changes of those before it, and the first hook that decides is the last one asked.
 * 3. A hook receives a signal, which aborts when the run stops or `within()` finds the hook slow. A hook that ignores it is abandoned.
 * 4. Changes of `on_prompt_submit` are stored. Changes of `pre_llm_request` are for that request only.
 * 5. `ContinueWithMessages` counts as a continuation: the limits `continuations` and `turns` bound it.
 * 6. There are no priorities: the first hook in the list, or in `use`, runs first.
 * 7. `when()` makes hooks conditional on the run; for a tool, the method contains an `if`.
 * 8. A hook is an object that can be called alone; `testMiddleware()` of the testing kit tests the middleware.
 *
 * Differences from the home system:
 *
 * - A skipped call has a result, because providers refuse a request with an open call.
 * - The hooks of a stream (`on_stream_chunk`, `on_text_delta`, `on_tool_call_delta`, `on_stream_complete`) do not exist: the document does not contain them.
 * - An error in `on_abort` does not replace the first error.
 * - `post_tool_call` receives the message of an error as thrown; unless a hook changes the content, the model receives the text of the failed result.
 *
 * A `warning` reports methods named `on_`, `pre_` or `post_` that yoi does not have.
 *
 * Throws a `TypeError` for a method that is not a function, and for one whose name is in camel case, such as `preToolCall`, if there is no `pre_tool_call`.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { PreToolCallResult, type YoiHook, yoi_hooks } from "@jizai/jizai/middleware/yoi_hooks";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const blocked = new Set(["bash"]);
 * const blocker: YoiHook = {
 *   pre_tool_call: ({ call }) => blocked.has(call.name) ? PreToolCallResult.Skip : PreToolCallResult.Continue,
 * };
 * const formatter: YoiHook = {
 *   post_tool_call({ result }) {
 *     if (!result.is_error) result.content = `[OK] ${result.content}`;
 *   },
 * };
 * const tools = ["bash", "echo"].map((name) =>
 *   tool({ name, description: "Says it again", input: z.object({ text: z.string() }), execute: ({ text }) => text })
 * );
 * const model = scripted({ calls: [["bash", { text: "rm" }], ["echo", { text: "hi" }]] }, "Done.");
 *
 * const { messages } = await agent({ model, tools, use: [yoi_hooks([blocker, formatter])] }).run("Go").result;
 * const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
 * assertEquals(results.map(({ status, parts }) => [status, parts]), [
 *   ["skipped", [{ type: "text", text: "Not run now: it is submitted again later." }]],
 *   ["ok", [{ type: "text", text: "[OK] hi" }]],
 * ]);
 * ```
 */
export function yoi_hooks(hooks: YoiHook | readonly YoiHook[], options: YoiOptions = {}): Middleware {
  const subject = "Cannot create yoi_hooks()";
  expectNames(subject, options, ["outward"]);
  const { outward = "listed" } = options;
  expectChoice(subject, "outward", outward, ["listed", "onion"]);
  const inwards = [hooks].flat();
  const known: readonly string[] = events;
  for (const hook of inwards) {
    if (!isObject(hook)) throw new TypeError("Cannot use hooks: expected an object with `pre_tool_call` and others");
    expectNoOption(subject, hook, events, ["outward"]);
    const wrong = events.find((event) => !["undefined", "function"].includes(typeof hook[event]));
    if (wrong) throw new TypeError(`Cannot use ${wrong}: expected a function, received ${typeof hook[wrong]}`);
    const misspelt = events.find((event) => hook[event] === undefined && typeof hook[camelCase(event)] === "function");
    if (misspelt) throw new TypeError(`Cannot use ${camelCase(misspelt)}: unknown hook; expected ${misspelt}`);
  }
  const unknown = inwards.flatMap((hook) => Object.keys(hook))
    .filter((name) => /^(on|pre|post)_/.test(name) && !known.includes(name));
  const order: Order = { inwards, outwards: outward === "onion" ? inwards.toReversed() : inwards };
  const has = (event: keyof YoiHook) => inwards.some((hook) => hook[event] !== undefined);
  return warnSilent(
    atNeededPoints({ name: "yoi_hooks", inherit: false, ...hooksOf(order) }, needs, has),
    unknown.map((name) => `${name} never runs: unknown hook.`),
  );
}

function camelCase(event: string): string {
  return event.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
}
