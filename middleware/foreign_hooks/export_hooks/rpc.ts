/**
 * Middleware as a hook of PicoClaw: what it answers to messages of JSON-RPC.
 *
 * @module
 */
import * as z from "zod";
import { End, isInterrupt } from "../../../mod.ts";
import { struct } from "../rpc_hooks/wire/struct.ts";
import type { Onions } from "./onions.ts";
import { askingModel } from "./rpc_llm.ts";
import { askingTool } from "./rpc_tool.ts";
import { type OnError, reasonOf } from "./runs.ts";
import { meta, noRuns } from "./underway.ts";

/** What a message is answered with. */
export interface RpcAnswer {
  /** The version. */
  readonly jsonrpc: "2.0";
  /** What it answers. */
  readonly id: number;
  /** What is answered. */
  readonly result?: unknown;
  /** Why nothing is. */
  readonly error?: { readonly code: number; readonly message: string };
}

/** Answers a message; nothing where it is none, or asks for nothing. */
export type Rpc = (message: unknown) => Promise<RpcAnswer | undefined>;

const message = z.object({ id: z.number().optional(), method: z.string(), params: z.unknown().optional() });
const about = struct({ meta });

/** Makes who answers for `onions`, under `name`. */
export function rpcOf(name: string, onions: Onions, onError: OnError): Rpc {
  const runs = noRuns(onError);
  const model = askingModel(onions, runs);
  const tool = askingTool(onions, runs, onError);
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
      const end = runs.runOf(about.parse(params).meta).ended();
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
    const said = { jsonrpc: "2.0", id } as const;
    if (method === "hook.hello") return { ...said, result: { ok: true, name } };
    if (!methods[method]) return { ...said, error: { code: -32601, message: `There is no ${method}` } };
    try {
      return { ...said, result: await answerTo(method, params) };
    } catch (error) {
      onError(error);
      return { ...said, error: { code: -32000, message: `${method} failed` } };
    }
  };
}

/** What ends a run, or denies a call where it is about one. */
function interrupted(method: string, interrupt: Error): unknown {
  const reason = reasonOf(interrupt);
  if (method === "hook.approve_tool") return { approved: false, reason };
  if (interrupt instanceof End) return { action: interrupt.rollback ? "hard_abort" : "abort_turn", reason };
  return { action: method === "hook.before_tool" ? "deny_tool" : "abort_turn", reason };
}
