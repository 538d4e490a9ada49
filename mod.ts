/**
 * Jizai: agents at the edge, every point of their life an onion of `(ctx, next)` hooks.
 *
 * ```ts
 * import { agent, type Middleware } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const shout: Middleware = {
 *   name: "shout",
 *   async prompt(ctx, next) {
 *     const answer = await next();
 *     return { ...answer, text: answer.text.toUpperCase() };
 *   },
 * };
 *
 * const { text } = await agent({ model: scripted("Hello!"), use: [shout] }).run("Hi").result;
 * assertEquals(text, "HELLO!");
 * ```
 *
 * @module
 */
export { CapacityError } from "./src/core/bounded_cache.ts";
export { type ClaimOptions, SessionError } from "./src/core/claim.ts";
export {
  type Agent,
  agent,
  type AgentOptions,
  type AsToolOptions,
  type CompactingOptions,
  type CompactOptions,
  type Empty,
  type PromptOptions,
  type ResumeOptions,
  type RunHandle,
  type RunOptions,
  type Vars,
  vars,
  type VarsOption,
} from "./src/core/agent.ts";
export * from "./src/core/answers.ts";
export { End, type EndOptions, isInterrupt, Pause, Paused } from "./src/core/interrupt.ts";
export { defaultLimits, deploy, type Limits, workers } from "./src/core/limits.ts";
export type { NumberedEvent, OnError } from "./src/core/events.ts";
export type { Hook, Next } from "./src/core/onion.ts";
export type * from "./src/core/points.ts";
export { mapTexts, rewrite, type RewriteOptions, type Rewriter, windowed } from "./src/core/rewrite.ts";
export type { Opened, Started, StopOptions } from "./src/core/run.ts";
export type { Infer, Issue, Schema, Validation } from "./src/core/schema.ts";
export type { Change, QuestionOptions, Run, Scope, Used } from "./src/core/scope.ts";
export { only, when } from "./src/core/select.ts";
export { type State, state, type StateOptions } from "./src/core/state.ts";
export type { SendOptions } from "./src/core/inbox.ts";
export { type ListOptions, memory, type MemoryOptions, type Store } from "./src/core/store.ts";
export {
  type AnyTool,
  type Tool,
  tool,
  ToolError,
  type ToolExecutionContext,
  type ToolOptions,
} from "./src/core/tool.ts";
export type { AnyEnv, Busy, ClientGone, RequestVars, ServedAgent, ServeOptions } from "./src/http/options.ts";
export type { OnFailure } from "./src/http/respond/error_response.ts";
export { serve } from "./src/http/serve.ts";
export * from "./src/model/model.ts";
export type * from "./src/protocol/event.ts";
export type * from "./src/protocol/files.ts";
export * from "./src/protocol/message.ts";
export type * from "./src/protocol/question.ts";
export * from "./src/protocol/session.ts";
export type { Sink } from "./src/stream/channel.ts";
