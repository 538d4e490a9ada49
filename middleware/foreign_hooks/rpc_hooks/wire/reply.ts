/**
 * The replies of hooks.
 *
 * @module
 */
import * as z from "zod";
import { isObject } from "../../kit/fields.ts";
import { wireMessage, wireTool } from "./message.ts";
import { wireOptions } from "./options.ts";
import { wireResponse } from "./response.ts";
import { wireResult } from "./result.ts";
import { fields, flag, struct, text } from "./struct.ts";

/** The decision in a reply: `continue` (also empty), `modify`, `respond`, `deny_tool`, `abort_turn` or `hard_abort`, and its reason. */
export interface Decision {
  readonly action: string;
  readonly reason: string;
}

const decision = { action: text, reason: text };
const call = { tool: text, arguments: fields };

/** Accepts `{ [name]: value }`, and also the value alone if it has one of `keys`. */
function nested<S extends z.core.$ZodType>(name: string, keys: readonly string[], schema: S) {
  return z.preprocess((given) => {
    const has = (keys: readonly string[]) =>
      isObject(given) && Object.keys(given).some((key) => keys.includes(key.toLowerCase()));
    return has(keys) && !has([name]) ? { [name]: given } : given;
  }, schema);
}

/** The reply to `before_llm`. The request replaces the original: an absent field is empty. */
export const beforeLlmReply = struct({
  ...decision,
  request: z.optional(struct({
    model: text,
    messages: z.array(wireMessage).default([]),
    tools: z.array(wireTool).default([]),
    options: z._default(wireOptions, {}),
  })),
});

/** The reply to `after_llm`: with the object of the request, or with the response alone. */
export const afterLlmReply = struct({
  ...decision,
  response: nested(
    "response",
    ["role", "content", "reasoning_content", "tool_calls"],
    z.optional(struct({ response: z.optional(wireResponse) })),
  ),
});

/** The reply to `before_tool`. `result`, or `call.hook_result`, is the result of a call that the hook answers. */
export const beforeToolReply = struct({
  ...decision,
  call: z.optional(struct({ ...call, hook_result: z.optional(wireResult) })),
  result: z.optional(wireResult),
});

/** The reply to `after_tool`: with the object of the request, or with the result alone. */
export const afterToolReply = struct({
  ...decision,
  result: nested(
    "result",
    ["for_llm", "for_user", "is_error", "media"],
    z.optional(struct({ ...call, result: z.optional(wireResult) })),
  ),
});

/** The reply to `approve_tool`. */
export const approveToolReply = struct({ approved: flag, reason: text });
