/**
 * Agents that drop the oldest messages of a long transcript.
 *
 * @module
 */
import { agent } from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";

/** Creates an agent with compaction around its other middleware. */
export const compacting: typeof agent = (options) =>
  agent({ ...options, use: [compaction({ summarize: false }), ...options.use ?? []] });
