/**
 * What runs of PicoClaw have under way, which says no more of them than to what a message belongs.
 *
 * @module
 */
import * as z from "zod";
import type { ModelContext, ModelResponse, ToolContext, ToolResult } from "../../../mod.ts";
import { struct, text } from "../rpc_hooks/wire/struct.ts";
import type { Passage } from "./passage.ts";
import { type Foreign, kept, type OnError, runsOf } from "./runs.ts";

/** What a message belongs to. */
export const meta = struct({ AgentID: text, TurnID: text, SessionKey: text, Iteration: z.number().default(0) });

/** What a message belongs to. */
export type Meta = z.output<typeof meta>;

/** What a run has under way. */
export interface Underway {
  /** The response of the model that it is at. */
  iteration: number;
  /** The model, while it is asked. */
  model: Passage<ModelContext, ModelResponse> | undefined;
  /** Calls that are made. */
  calls: Passage<ToolContext, ToolResult>[];
}

/** Runs, by what a message says that it belongs to. */
export interface Runs {
  /** The run. */
  runOf(meta: Meta): Foreign;
  /** What it has under way; of what belongs to an earlier response of the model nothing will be heard any more. */
  underway(meta: Meta): Underway;
}

/** Begins with no runs. */
export function noRuns(onError: OnError): Runs {
  const foreign = runsOf(onError);
  const runs = new Map<string, Underway>();
  return {
    runOf: ({ TurnID: id, SessionKey: session, AgentID: agent }) => foreign({ id, session, agent }),
    underway({ TurnID, Iteration }) {
      const begin = (): Underway => ({ iteration: Iteration, model: undefined, calls: [] });
      const all = kept(runs, TurnID, begin, leave);
      if (all.iteration !== Iteration) leave(all);
      all.iteration = Iteration;
      return all;
    },
  };
}

function leave(all: Underway): void {
  all.model?.leave();
  for (const passage of all.calls) passage.leave();
  all.model = undefined;
  all.calls = [];
}
