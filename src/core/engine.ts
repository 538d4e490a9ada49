/**
 * The parts of the engine that a server, a store, or a program that runs hooks without an agent needs, and the types that other types refer to.
 *
 * @module
 */
export type { StartCompactOptions, VarsOption } from "./agent/options.ts";
export {
  type AgentDefinition,
  type AgentParts,
  type AnswerFormat,
  defineAgent,
  type OnionOf,
  type Onions,
  type WrapHooks,
} from "./agent/definition.ts";
export type { Issue, Validation } from "./agent/schema.ts";
export type { ToolTable } from "./agent/tool.ts";
export { approvalPolicyOf } from "./calls/approval.ts";
export { toolResultOf } from "./calls/tool_io.ts";
export { compact, compactionHooks, type CompactOptions } from "./features/compaction.ts";
export { type GroupContext, nameOf, type ToolHooks } from "./hooks/middleware.ts";
export { compose, type Conditional, type Named, type Onion } from "./hooks/onion.ts";
export {
  type Derive,
  type HookAnswer,
  type HookFailure,
  merged,
  type PointPolicy,
  policyOf,
  type PolicyOptions,
} from "./hooks/policy.ts";
export type { RewriteOptions, Rewriter } from "./hooks/rewrite.ts";
export type { Used } from "./hooks/scope.ts";
export type { StateOptions } from "./hooks/state.ts";
export type { ClaimOptions } from "./persistence/claim_options.ts";
export type { MemoryOptions } from "./persistence/memory/memory.ts";
export type { Lease, Mail } from "./persistence/session.ts";
export type { ListOptions, OpenWriter, SessionStore } from "./persistence/store.ts";
export type { SessionWriter, WriterOptions } from "./persistence/writer.ts";
export type { NumberedEvent } from "./run/events.ts";
export type * from "./run/position.ts";
export type { Opened, Started } from "./start/options.ts";
export type { Checkpoint, CheckpointOptions, Inner, Region, Step, Steps } from "./run/step.ts";
export type { ModelEffort, ModelErrorOptions } from "../model/model.ts";
export type {
  CompactTrigger,
  Decider,
  Decision,
  DeltaEvent,
  FailureCode,
  HookAct,
  ResponseEvent,
  RunEvent,
  ToolEvent,
  WarningCode,
} from "../protocol/event.ts";
export { providerResultOf } from "../protocol/message.ts";
export type { AddedPart, LogprobsPart, ProviderCallPart, ProviderResultPart, TokenLogprob } from "../protocol/part.ts";
export type { Sink } from "../stream/channel.ts";
