/**
 * The parts of the package of which a test loads a second copy, as a middleware package with its own copy would bring them.
 *
 * @module
 */
export * as core from "../../mod.ts";
export * as clientModule from "../../src/client/mod.ts";
export * as compactionModule from "../../middleware/context/compaction.ts";
export * as loggerModule from "../../middleware/observability/logger.ts";
export * as redactModule from "../../middleware/guards/redact/mod.ts";
export * as retryModule from "../../middleware/reliability/retry.ts";
export * as scriptedModule from "../../src/model/scripted.ts";
export * as subagentsModule from "../../src/core/features/subagents.ts";
export * as tokenModule from "../../src/session/resume_token/mod.ts";
export * as wireModule from "../../src/wire/mod.ts";
export { RecordError } from "../../src/session/record/records.ts";
export { StoreDeadlineError } from "../../src/core/store.ts";
export { SlowStoreError } from "../../src/session/durable/bounded.ts";
