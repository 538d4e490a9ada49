/**
 * What hooks answer.
 *
 * @module
 */
import * as z from "zod";
import { type WireMessage, wireMessage, wireOptions, type WireTool, wireTool } from "./message.ts";
import { type WireResponse, wireResponse } from "./response.ts";
import { type WireResult, wireResult } from "./result.ts";
import { fields, flag, struct, text } from "./struct.ts";

/** What a hook decides. */
export interface Decision {
  /** `continue`, which an empty text is too, `modify`, `respond`, `deny_tool`, `abort_turn` or `hard_abort`. */
  readonly action: string;
  /** Why. */
  readonly reason: string;
}

/** A request, as a hook has it sent: all of it, what it leaves out is left out. */
export interface GivenRequest {
  /** The model's name. */
  readonly model: string;
  /** The conversation. */
  readonly messages: readonly WireMessage[];
  /** What the model may use. */
  readonly tools: readonly WireTool[];
  /** What the provider is told. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** A call, as a hook has it made. */
export interface GivenCall {
  /** The tool. */
  readonly tool: string;
  /** Its input. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** What it comes to, where the hook responds: another place for `result`. */
  readonly hook_result?: WireResult | undefined;
}

/** The answer to `before_llm`. */
export interface BeforeLlmReply extends Decision {
  /** What is sent instead. */
  readonly request?: GivenRequest | undefined;
}

/** The answer to `after_llm`. */
export interface AfterLlmReply extends Decision {
  /** What the model is taken to have answered. */
  readonly response?: { readonly response?: WireResponse | undefined } | undefined;
}

/** The answer to `before_tool`. */
export interface BeforeToolReply extends Decision {
  /** The call that is made instead. */
  readonly call?: GivenCall | undefined;
  /** What the call comes to, where the hook responds. */
  readonly result?: WireResult | undefined;
}

/** The answer to `after_tool`. */
export interface AfterToolReply extends Decision {
  /** What the call came to. */
  readonly result?: (GivenCall & { readonly result?: WireResult | undefined }) | undefined;
}

/** The answer to `approve_tool`. */
export interface ApproveToolReply {
  /** Whether the call may be made. */
  readonly approved: boolean;
  /** Why not. */
  readonly reason: string;
}

const decision = { action: text, reason: text };
const call = { tool: text, arguments: fields };

/** What the answer to `before_llm` has to look like. */
export const beforeLlmReply: z.ZodType<BeforeLlmReply> = struct({
  ...decision,
  request: struct({
    model: text,
    messages: z.array(wireMessage).default([]),
    tools: z.array(wireTool).default([]),
    options: wireOptions.default({}),
  }).optional(),
});

/** What the answer to `after_llm` has to look like. */
export const afterLlmReply: z.ZodType<AfterLlmReply> = struct({
  ...decision,
  response: struct({ response: wireResponse.optional() }).optional(),
});

/** What the answer to `before_tool` has to look like. */
export const beforeToolReply: z.ZodType<BeforeToolReply> = struct({
  ...decision,
  call: struct({ ...call, hook_result: wireResult.optional() }).optional(),
  result: wireResult.optional(),
});

/** What the answer to `after_tool` has to look like. */
export const afterToolReply: z.ZodType<AfterToolReply> = struct({
  ...decision,
  result: struct({ ...call, result: wireResult.optional() }).optional(),
});

/** What the answer to `approve_tool` has to look like. */
export const approveToolReply: z.ZodType<ApproveToolReply> = struct({ approved: flag, reason: text });
