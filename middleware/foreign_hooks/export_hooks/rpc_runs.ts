/**
 * The runs of PicoClaw, which are known by the meta of their messages only.
 *
 * @module
 */
import * as z from "zod";
import type { ModelContext, ModelResponse, ToolContext, ToolResult } from "../../../mod.ts";
import { remember } from "../kit/remember.ts";
import { struct, text } from "../rpc_hooks/wire/struct.ts";
import type { Descent } from "./descent.ts";
import { type ForeignRun, type OnError, runsOf } from "./runs.ts";

/** The schema of the meta of a message. */
export const meta = struct({ AgentID: text, TurnID: text, SessionKey: text, Iteration: z.number().default(0) });

/** The meta of a message. */
export type Meta = z.output<typeof meta>;

/** The hooks of a run that wait for a result. */
export interface Pending {
  iteration: number;
  model: Descent<ModelContext, ModelResponse> | undefined;
  calls: Descent<ToolContext, ToolResult>[];
}

/** The runs of PicoClaw. */
export interface RpcRuns {
  runOf(meta: Meta): ForeignRun;
  /** Returns the hooks that wait. Those of an earlier iteration are cancelled: no result will arrive for them. */
  pendingOf(meta: Meta): Pending;
}

/** Creates an empty set of runs. */
export function rpcRuns(onError: OnError): RpcRuns {
  const foreign = runsOf(onError);
  const runs = new Map<string, Pending>();
  return {
    runOf: ({ TurnID: id, SessionKey: session, AgentID: agent }) => foreign({ id, session, agent }),
    pendingOf({ TurnID, Iteration }) {
      const create = (): Pending => ({ iteration: Iteration, model: undefined, calls: [] });
      const all = remember(runs, TurnID, create, cancel);
      if (all.iteration !== Iteration) cancel(all);
      all.iteration = Iteration;
      return all;
    },
  };
}

function cancel(all: Pending): void {
  all.model?.cancel();
  for (const call of all.calls) call.cancel();
  all.model = undefined;
  all.calls = [];
}
