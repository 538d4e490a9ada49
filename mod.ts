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
export { CapacityError } from "./src/core/bounded_cache.ts";
export {
  type Agent,
  agent,
  type AgentOptions,
  type PromptOptions,
  type ResumeOptions,
  type RunHandle,
  type RunOptions,
  type Vars,
  vars,
} from "./src/core/agent.ts";
export {
  type AnyTool,
  type Infer,
  type Schema,
  type Tool,
  tool,
  ToolError,
  type ToolExecutionContext,
  type ToolOptions,
} from "./src/core/tool.ts";
export type { SendOptions } from "./src/core/steering.ts";
export { End, type EndOptions, isInterrupt, Pause, Paused } from "./src/core/interrupt.ts";
export type { Middleware } from "./src/core/middleware.ts";
export type { Hook, Next } from "./src/core/onion.ts";
export type * from "./src/core/points.ts";
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
} from "./src/core/hook_answers.ts";
export { rewrite, windowed } from "./src/core/rewrite.ts";
export type { AskOptions, Change, Run, Scope } from "./src/core/scope.ts";
export { only, when } from "./src/core/conditions.ts";
export { type State, state } from "./src/core/state.ts";
export { mapTexts } from "./src/core/lib/json.ts";
export { type Session, SessionError } from "./src/core/session.ts";
export { memory } from "./src/core/memory.ts";
export type { Store } from "./src/core/store.ts";
export type { StopOptions } from "./src/core/control.ts";
export type { ErrorInfo, OnError } from "./src/core/events.ts";
export { defaultLimits, deploy, type Limits, workers } from "./src/core/limits.ts";
export type {
  Busy,
  ClientGone,
  DefaultEnv,
  OnEnd,
  RequestVars,
  RunEnd,
  ServedAgent,
  ServeOptions,
} from "./src/http/options.ts";
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
export type { PersonAnswer, Question, QuestionOptions, Suggestion } from "./src/protocol/question.ts";
