/**
 * The parts of the engine that a server or a store needs, and the types that other types refer to.
 *
 * @module
 */
export type { StartCompactOptions, VarsOption } from "./agent.ts";
export type { AgentDefinition, AgentParts, AnswerFormat, OnionOf, Onions, WrapHooks } from "./definition.ts";
export type { Issue, ToolTable, Validation } from "./tool.ts";
export { compact, compactionHooks, type CompactOptions } from "./compaction.ts";
export type { GroupContext, ToolHooks, ToolMiddleware } from "./middleware.ts";
export { compose, type Conditional, type Named, type Onion } from "./onion.ts";
export type { Derive, HookAnswer, HookFailure, PointPolicy, PolicyOptions } from "./policy.ts";
export type { RewriteOptions, Rewriter } from "./rewrite.ts";
export type { Used } from "./scope.ts";
export type { StateOptions } from "./state.ts";
export type { AbortOptions } from "./control.ts";
export type { ClaimConditions, ClaimOptions } from "./claim.ts";
export type { MemoryOptions } from "./memory.ts";
export type { Lease, Mail, Unsaved } from "./session.ts";
export type { JournalListOptions } from "./journal.ts";
export type { ListOptions, RunStore, UnsavedSessions } from "./store.ts";
export type { NumberedEvent } from "./events.ts";
export type {
  AllowedCall,
  AnsweredQuestion,
  AskedText,
  At,
  CallRecord,
  CallStep,
  Checkpoint,
  CheckpointOptions,
  Counters,
  DirectCall,
  Exit,
  exits,
  ExitStatus,
  Move,
  Position,
  PositionAt,
  ReviewedResult,
  RunSnapshot,
  SavedApproval,
  Stop,
} from "./position.ts";
export type { ReadyRun, Started, StateBefore } from "./start.ts";
export type { ModelEffort, ModelErrorOptions } from "../model/model.ts";
export type {
  CompactTrigger,
  ContextEdit,
  Decider,
  Decision,
  DeltaEvent,
  FailureCode,
  HookAct,
  HookChange,
  RequestedTool,
  ResponseEvent,
  RunEvent,
  ToolEvent,
  WarningCode,
} from "../protocol/event.ts";
export type { InnerAnswer, InnerCall, InnerCalls } from "../protocol/message.ts";
export type {
  AddedPart,
  LogprobsPart,
  OutputChange,
  ProviderCallPart,
  ProviderResultPart,
  TokenLogprob,
} from "../protocol/part.ts";
export type { Sink } from "../stream/channel.ts";
export type { Asking } from "../protocol/question.ts";
export type { OutputStream } from "./output.ts";
