/**
 * The assistant: it answers questions about this project from its documentation, and calculates.
 *
 * @module
 */
import { type Agent, agent, type Middleware, type Model } from "@jizai/jizai";
import type { WrapHooks } from "@jizai/jizai/engine";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { readDocs } from "./docs.ts";
import { library } from "./search.ts";
import { calculate, docsTools, sum } from "./tools.ts";

const docs = library(await readDocs(new URL("../../", import.meta.url)));

/** Allows reading and short calculations. A longer calculation asks a person. */
const policy = permissions({
  ask: [{
    tool: "calculate",
    when: (input) => sum.parse(input).expression.length > 20,
    why: "Calculate something this long?",
  }],
  allow: ["search_docs", "read_doc", "calculate"],
  otherwise: "deny",
});

/** Additions to the assistant: outer middleware, and a trace of all hooks. */
export interface Additions {
  readonly use?: readonly Middleware[];
  readonly trace?: WrapHooks;
}

/** Creates the assistant. */
export function assistant(model: Model, { use = [], ...additions }: Additions = {}): Agent<unknown, unknown> {
  return agent({
    name: "assistant",
    model,
    instructions: "Answer from the documentation: search it, read what fits, and quote it with its source.",
    tools: [...docsTools(docs), calculate],
    use: [...use, policy],
    ...additions,
  });
}
