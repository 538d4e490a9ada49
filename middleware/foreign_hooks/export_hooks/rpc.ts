/**
 * Middleware as a hook of PicoClaw, which answers messages of JSON-RPC.
 *
 * @module
 */
import * as z from "zod";
import { End, isInterrupt } from "../../../mod.ts";
import { struct } from "../rpc_hooks/wire/struct.ts";
import type { Onions } from "./onions.ts";
import { rpcModel } from "./rpc_llm.ts";
import { rpcTool } from "./rpc_tool.ts";
import { type OnError, reasonOf } from "./runs.ts";
import { meta, rpcRuns } from "./rpc_runs.ts";

/** The answer to a message. */
export interface RpcAnswer {
  /** The version. */
  readonly jsonrpc: "2.0";
  /** The id of the request. */
  readonly id: number;
  /** The result. */
  readonly result?: unknown;
  /** The error. */
  readonly error?: { readonly code: number; readonly message: string };
}

/** Answers a message. Returns nothing for a notification, or for a value that is not a message. */
export type Rpc = (message: unknown) => Promise<RpcAnswer | undefined>;

const message = z.object({ id: z.number().optional(), method: z.string(), params: z.unknown().optional() });
const about = struct({ meta });

/** Creates the function that answers with the hooks in `onions`, under `name`. */
export function rpcOf(name: string, onions: Onions, onError: OnError): Rpc {
  const runs = rpcRuns(onError);
  const model = rpcModel(onions, runs);
  const tool = rpcTool(onions, runs, onError);
  const methods: Readonly<Record<string, (params: unknown) => Promise<unknown>>> = {
    "hook.before_llm": model.before,
    "hook.after_llm": model.after,
    "hook.before_tool": tool.before,
    "hook.after_tool": tool.after,
    "hook.approve_tool": tool.approve,
  };

  async function answerTo(method: string, params: unknown): Promise<unknown> {
    try {
      const result = await methods[method]?.(params);
      const end = runs.runOf(z.parse(about, params).meta).ended();
      return end ? interrupted(method, end) : result;
    } catch (error) {
      if (error instanceof Error && isInterrupt(error)) return interrupted(method, error);
      throw error;
    }
  }

  return async (given) => {
    const read = message.safeParse(given);
    if (!read.success || read.data.id === undefined) return undefined;
    const { id, method, params } = read.data;
    const answer = { jsonrpc: "2.0", id } as const;
    if (method === "hook.hello") return { ...answer, result: { ok: true, name } };
    if (!methods[method]) return { ...answer, error: { code: -32601, message: `Unknown method: ${method}` } };
    try {
      return { ...answer, result: await answerTo(method, params) };
    } catch (error) {
      onError(error);
      return { ...answer, error: { code: -32000, message: `${method} failed` } };
    }
  };
}

/** Returns the result for an interrupt: the end of the run, or a denial of the call. */
function interrupted(method: string, interrupt: Error): unknown {
  const reason = reasonOf(interrupt);
  if (method === "hook.approve_tool") return { approved: false, reason };
  if (interrupt instanceof End) return { action: interrupt.rollback ? "hard_abort" : "abort_turn", reason };
  return { action: method === "hook.before_tool" ? "deny_tool" : "abort_turn", reason };
}
