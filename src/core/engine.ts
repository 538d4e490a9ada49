/**
 * The parts of the engine that a server, a store, or a program that runs hooks without an agent needs, and the types that other types refer to.
 *
 * @module
 */
export type { StartCompactOptions, VarsOption } from "./agent.ts";
export {
  type AgentDefinition,
  type AgentParts,
  type AnswerFormat,
  defineAgent,
  type OnionOf,
  type Onions,
  type WrapHooks,
} from "./definition.ts";
export type { Issue, ToolTable, Validation } from "./tool.ts";
export { approvalPolicyOf } from "./approval.ts";
export { toolResultOf } from "./tool_io.ts";
export { compact, compactionHooks, type CompactOptions } from "./compaction.ts";
export { type GroupContext, nameOf, type ToolHooks } from "./middleware.ts";
export { compose, type Conditional, type Named, type Onion } from "./onion.ts";
export {
  type Derive,
  type HookAnswer,
  type HookFailure,
  merged,
  type PointPolicy,
  policyOf,
  type PolicyOptions,
} from "./policy.ts";
export type { RewriteOptions, Rewriter } from "./rewrite.ts";
export type { Used } from "./scope.ts";
export type { StateOptions } from "./state.ts";
export type { ClaimOptions } from "./claim.ts";
export type { MemoryOptions } from "./memory.ts";
export type { Lease, Mail } from "./session.ts";
export type { ListOptions, OpenWriter, SessionStore, SessionWriter, WriterOptions } from "./store.ts";
export type { NumberedEvent } from "./events.ts";
export type {
  AllowedCall,
  AnsweredQuestion,
  AskedText,
  At,
  CallRecord,
  Checkpoint,
  CheckpointOptions,
  Counters,
  Exit,
  exits,
  ExitStatus,
  Inner,
  Move,
  noCounters,
  Position,
  PositionAt,
  Region,
  ReviewedResult,
  RunSnapshot,
  SavedApproval,
  Step,
  Steps,
} from "./position.ts";
export type { Opened, Started } from "./start.ts";
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
export type { Asking } from "../protocol/question.ts";
