/**
 * The testing kit: for whoever tests an agent, or a middleware of their own. It knows no test runner.
 *
 * @module
 */
export {
  scripted,
  type ScriptedAnswer,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedStep,
} from "../model/scripted.ts";
export { collect, type Collected, type CollectOptions } from "./collect.ts";
export { fileLaws } from "./file_laws.ts";
export type { LawOptions, Make } from "./hold.ts";
export { logLaws } from "./log_laws.ts";
export { outline } from "./outline.ts";
export { storeLaws } from "./store_laws.ts";
export { testMiddleware, type TestOptions } from "./test_middleware.ts";
