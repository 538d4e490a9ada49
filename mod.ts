/**
 * Jizai: LLM agents at the edge. Each point in the life of a run is an onion of `(ctx, next)` hooks.
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
export { CapacityError } from "./src/core/persistence/memory/bounded_cache.ts";
export { type Agent, agent } from "./src/core/agent/agent.ts";
export {
  type AgentOptions,
  type PromptOptions,
  type ResumeOptions,
  type RunOptions,
  type Vars,
  vars,
} from "./src/core/agent/options.ts";
export type { RunHandle } from "./src/core/agent/run_handle.ts";
export type { Infer, Schema } from "./src/core/agent/schema.ts";
export {
  type AnyTool,
  type Tool,
  tool,
  ToolError,
  type ToolExecutionContext,
  type ToolOptions,
} from "./src/core/agent/tool.ts";
export type { SendOptions } from "./src/core/features/steering.ts";
export { End, type EndOptions, isInterrupt, Pause, Paused } from "./src/core/hooks/interrupt.ts";
export type { Middleware } from "./src/core/hooks/middleware.ts";
export type { Hook, Next } from "./src/core/hooks/onion.ts";
export type * from "./src/core/hooks/points/call.ts";
export type * from "./src/core/hooks/points/failure.ts";
export type * from "./src/core/hooks/points/run.ts";
export type * from "./src/core/hooks/points/turn.ts";
export {
  abortRun,
  allow,
  ask,
  cancelled,
  compacted,
  continueWith,
  declined,
  denied,
  deny,
  failed,
  finish,
  pause,
  refused,
  reply,
  skip,
  skipped,
  text,
  tryAgain,
} from "./src/core/hooks/results.ts";
export { rewrite, windowed } from "./src/core/hooks/rewrite.ts";
export type { AskOptions, Change, QuestionOptions, Run, Scope } from "./src/core/hooks/scope.ts";
export { only, when } from "./src/core/hooks/select.ts";
export { type State, state } from "./src/core/hooks/state.ts";
export { mapTexts } from "./src/core/lib/map_leaves.ts";
export { SessionError } from "./src/core/persistence/session_error.ts";
export { memory } from "./src/core/persistence/memory/memory.ts";
export type { Session } from "./src/core/persistence/session.ts";
export type { Store } from "./src/core/persistence/store.ts";
export type { StopOptions } from "./src/core/run/control.ts";
export type { OnError } from "./src/core/run/events.ts";
export { defaultLimits, deploy, type Limits, workers } from "./src/core/run/limits.ts";
export type {
  AnyEnv,
  Busy,
  ClientGone,
  OnEnd,
  RequestVars,
  RunEnd,
  ServedAgent,
  ServeOptions,
} from "./src/http/options.ts";
export type { OnFailure } from "./src/http/respond/error_response.ts";
export { serve, type ServedApp } from "./src/http/serve.ts";
export {
  type Model,
  ModelError,
  type ModelErrorCode,
  type ModelEvent,
  type ModelOptions,
  type ModelRequest,
  type ToolChoice,
  type ToolDefinition,
} from "./src/model/model.ts";
export type { Emit, Event, FinishReason, Point } from "./src/protocol/event.ts";
export {
  addUsage,
  type Artifact,
  type AssistantMessage,
  type CallResult,
  callsOf,
  mapText,
  type Message,
  noUsage,
  type ResultStatus,
  textOf,
  type ToolMessage,
  type ToolResult,
  type Usage,
  user,
  type UserMessage,
} from "./src/protocol/message.ts";
export type {
  AnswerPart,
  Call,
  CallPart,
  ContentPart,
  Json,
  MediaPart,
  ReasoningPart,
  RefusalPart,
  SourcePart,
  TextPart,
} from "./src/protocol/part.ts";
export type { PersonAnswer, Question, Suggestion } from "./src/protocol/question.ts";
