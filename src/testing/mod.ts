/**
 * Tools for tests of agents, middleware, and adapters of journals. They work with any test runner. Importing this module turns on `agent({ strict: true })`.
 *
 * @module
 */
import "./strict_default.ts";

export {
  scripted,
  type ScriptedAnswer,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedStep,
} from "../model/scripted.ts";
export { collect, type Collected, type CollectOptions } from "./collect.ts";
export {
  type CaseScores,
  evaluate,
  type EvaluatedRun,
  type EvaluateOptions,
  type Evaluation,
  type EvaluationCase,
  type Scorer,
} from "./evaluate.ts";
export { fileLaws } from "./laws/file_laws.ts";
export type { LawOptions, Make } from "./laws/laws.ts";
export { journalLaws } from "./laws/journal_laws.ts";
export { keyValueLaws } from "./laws/key_value_laws.ts";
export { outline } from "./outline.ts";
export { testMiddleware, type TestOptions } from "./middleware/test_middleware.ts";
export type { Files } from "../protocol/files.ts";
export type { KeyValue } from "../protocol/key_value.ts";
export type { Journal } from "../core/journal.ts";
