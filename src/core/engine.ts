/**
 * The parts of the engine that a server, a store, or a program that runs hooks without an agent needs.
 *
 * @module
 */
export type { StartCompactOptions } from "./agent/agent.ts";
export { type AgentDefinition, type AgentParts, defineAgent, type Onions } from "./agent/definition.ts";
export { approvalPolicyOf } from "./calls/approval.ts";
export { toolResultOf } from "./calls/tool_io.ts";
export { compact, compactionHooks, type CompactOptions } from "./features/compaction.ts";
export { nameOf } from "./hooks/middleware.ts";
export { compose, type HookAnswer, type Named, type Onion, type PointPolicy } from "./hooks/onion.ts";
export { type Derive, merged, policyOf, type PolicyOptions } from "./hooks/policy.ts";
export type { ClaimOptions } from "./persistence/claim.ts";
export type { Lease, Mail } from "./persistence/session.ts";
export type { OpenWriter, SessionWriter, WriterOptions, WriterRun } from "./persistence/store.ts";
export type * from "./run/position.ts";
export type { Checkpoint, CheckpointOptions, Inner, Region, Step, Steps } from "./run/step.ts";
