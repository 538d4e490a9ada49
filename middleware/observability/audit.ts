/**
 * Records the messages from outside, the calls, and the decision about each call.
 *
 * @module
 */
import {
  type Call,
  End,
  type Event,
  type InputSource,
  isInterrupt,
  type Middleware,
  type Point,
  type ResultStatus,
  type Run,
  type RunResult,
  type Scope,
  state,
  textOf,
} from "../../mod.ts";
import type { Decision } from "../../src/core/engine.ts";
import { canonicalJson, expectNames, hashOf, mapLeaves } from "../../src/core/kit.ts";
export type { Decision } from "../../src/core/engine.ts";

// The records that `audit()` writes.

/** Fields of every record. */
export interface AuditStamp {
  /** Time of writing, in ISO 8601. */
  readonly time: string;
  /** Id of the run. */
  readonly run: string;
  /** Id of the session. */
  readonly session: string;
  /** The run and the call that the agent works for. Missing if the agent is not a tool of another one. */
  readonly parent?: { readonly run: string; readonly call: string };
}

/** The input, or the SHA-256 of its canonical JSON in hexadecimal if `hash` is set. */
export type AuditInput = { readonly input: unknown } | { readonly sha256: string };

/** Records a prompt when it arrives. */
export type PromptRecord = AuditStamp & AuditInput & { readonly type: "prompt" };

/** Records another message from outside, before it is accepted: an entry of the history that a client sent, steering, or a reply. */
export type InputRecord = AuditStamp & AuditInput & {
  readonly type: "input";
  readonly source: Exclude<InputSource, "prompt">;
};

/** Records a completed call. */
export type CallRecord = AuditStamp & AuditInput & {
  readonly type: "call";
  readonly turn: number;
  /** Id of the call. */
  readonly call: string;
  /** Name of the tool that ran, or would have run. */
  readonly tool: string;
  /** The decision. Missing if the call did not reach `approval`. */
  readonly decision?: Decision;
  /** The source of the decision. */
  readonly by?: "policy" | "person" | "rule";
  /**
   * Status of the result. `ended` or `threw`: a hook ended the run or failed before there was a result. `aborted`: also if the run stopped before the hooks
   * reviewed it.
   */
  readonly status: ResultStatus | "ended" | "threw";
  /** Milliseconds from the entry of the call to its result, which include the wait for its batch. */
  readonly ms: number;
};

/** Records the end or the pause of a run. */
export type RunEndRecord = AuditStamp & {
  readonly type: "run";
  readonly status: RunResult["status"] | "threw";
  readonly ms: number;
};

/** One parsed line. */
export type AuditRecord = PromptRecord | InputRecord | CallRecord | RunEndRecord;

// The tools, the inputs and the decisions of calls that are not recorded yet.

/** The outcome of the guards' check of a call. */
interface CheckedCall extends Pick<CallRecord, "decision" | "by"> {
  /** The turn of the call. */
  readonly turn: number;
  /** The tool that may run. Missing if the call did not reach `approval`. */
  readonly tool?: string;
  /** The input that it may run with. Missing if the call did not reach `approval`. */
  readonly input?: unknown;
}

/** By the id of the call. They are saved with the run, because a call that continues on its way out, or after a crash, is not approved again. */
const checked = state<Readonly<Record<string, CheckedCall>>>("audit.calls", () => ({}));

/** A call at a point. */
type AtCall = Scope & { readonly call: Call; readonly turn: number };

/** Returns what is known of a call. */
function checkedCall(ctx: AtCall): Partial<CheckedCall> {
  return checked.get(ctx)[ctx.call.id] ?? {};
}

/** Adds to what is known of a call. The calls of earlier turns are recorded, and are forgotten. */
function noteCall(ctx: AtCall, facts: Partial<CheckedCall>): void {
  const { turn, call: { id } } = ctx;
  checked.update(ctx, (calls) => {
    const current = Object.entries(calls).filter(([, call]) => call.turn === turn);
    return { ...Object.fromEntries(current), [id]: { ...calls[id], ...facts, turn } };
  });
}

// The middleware `audit()`, and its options.

/** Options of `audit()`. */
export interface AuditOptions {
  /**
   * Writes the SHA-256 of an input instead of the input. A reader who has an input can compare it with the hash, and can guess a short input from it.
   * Default: false.
   */
  readonly hash?: boolean;
  /**
   * Masks each text of an input, such as `redact().mask`. Pass it if hooks after `redact()` put secrets into inputs: the record has the input that ran.
   * Default: inputs are written as they are.
   */
  readonly mask?: (text: string) => string;
}

/**
 * Writes a line of JSON for every message of a person, every call and every end of a run, and waits until it is written. Place it first in `use`, but after
 * `redact()`, so that it sees every call and no secret. It records the tool and the input that ran in the end. Agents that are tools inherit it, so their
 * calls and the ends of their runs are recorded too, with the run and the call that they work for. An agent with an `audit()` of its own writes to both, so
 * give it the same object, or none. If `write` throws or rejects, the run continues, because a call cannot be undone; the error is reported to the operator,
 * and a warning says that a record is missing.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { audit } from "@jizai/jizai/middleware/audit";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const pay = tool({
 *   name: "pay",
 *   description: "Pays a bill",
 *   input: z.object({ euros: z.number() }),
 *   execute: () => "paid",
 * });
 * const lines: string[] = []; // or a file: (line) => Deno.writeTextFile("audit.jsonl", line, { append: true })
 * const assistant = agent({
 *   model: scripted({ calls: [["pay", { euros: 12 }]] }, "It is paid."),
 *   tools: [pay],
 *   use: [audit((line) => void lines.push(line))],
 * });
 *
 * await assistant.run("Pay the bill").result;
 * const kept = lines.map((line) => JSON.parse(line)).map(({ type, input, status }) => ({ type, input, status }));
 * assertEquals(kept, [
 *   { type: "prompt", input: "Pay the bill", status: undefined },
 *   { type: "call", input: { euros: 12 }, status: "ok" },
 *   { type: "run", input: undefined, status: "done" },
 * ]);
 * ```
 */
export function audit(
  write: (line: string) => void | Promise<void>,
  options: AuditOptions = {},
): Middleware {
  expectNames("Cannot create audit()", options, ["hash", "mask"]);
  const { hash = false, mask = (text) => text } = options;
  const append = appender(write, { hash, mask });
  const openRuns = new WeakMap<Run, OpenRun>();

  return {
    name: "audit",
    after: ["redact"], // before it, prompts and inputs still contain secrets
    inherit: true,
    async session(ctx, next) {
      const start = performance.now();
      const writeEnd = once((status: RunEndRecord["status"]) =>
        append(ctx, "session", { type: "run", status, ms: since(start) })
      );
      const calls: OpenRun["calls"] = new Map();
      openRuns.set(ctx.run, { calls, writeEnd });
      try {
        const result = await next();
        await writeEnd(result.status);
        return result;
      } catch (error) {
        await writeEnd("threw");
        throw error;
      } finally {
        if (calls.size === 0) openRuns.delete(ctx.run); // otherwise the map would keep the run until the next full garbage collection
      }
    },
    async input(ctx, next) {
      const { source, messages } = ctx;
      for (const message of messages) {
        if (message.role !== "user") continue;
        const kind = source === "prompt" ? { type: "prompt" } : { type: "input", source };
        await append(ctx, "input", kind, textOf(message));
      }
      return await next();
    },
    async tool(ctx, next) {
      const { call, turn } = ctx;
      const start = performance.now();
      const emit = (event: Event) => {
        if (event.type === "approval.decided") noteCall(ctx, { decision: event.decision, by: event.by });
        ctx.emit(event);
      };
      const writeEnd = once((status: CallRecord["status"]) => {
        const { tool = ctx.name, input = ctx.input, decision, by } = checkedCall(ctx);
        const fields = { type: "call", turn, call: call.id, tool, decision, by, status, ms: since(start) };
        return append(ctx, "tool", fields, input);
      });
      const openRun = openRuns.get(ctx.run)?.calls;
      openRun?.set(call.id, writeEnd);
      try {
        const result = await next({ emit });
        await writeEnd(result.status);
        return result;
      } catch (error) {
        if (error instanceof End) await writeEnd("ended");
        else if (!isInterrupt(error)) await writeEnd("threw"); // a paused call is recorded after its answer
        throw error;
      } finally {
        openRun?.delete(call.id);
      }
    },
    async approval(ctx, next) {
      noteCall(ctx, { tool: ctx.name, input: ctx.input });
      return await next();
    },
    async abort(ctx, next) {
      const { source, status } = ctx;
      const openRun = openRuns.get(ctx.run);
      for (const writeEnd of openRun?.calls.values() ?? []) await writeEnd("aborted"); // of a hook that hangs: `tool` and `session` never continue
      if (source === "stop") await openRun?.writeEnd(status);
      openRuns.delete(ctx.run);
      return await next();
    },
  };
}

/** A run whose end is not recorded yet. */
interface OpenRun {
  /** The functions that record its calls, by the id of the call, until they are recorded. */
  readonly calls: Map<string, (status: CallRecord["status"]) => Promise<void>>;
  readonly writeEnd: (status: RunEndRecord["status"]) => Promise<void>;
}

/** Returns a function that does its work at the first call only. */
function once<S>(work: (status: S) => Promise<void>): (status: S) => Promise<void> {
  let done: Promise<void> | undefined;
  return (status) => done ??= work(status);
}

/** Returns a function that writes a record. Never rejects: a failure is reported. */
function appender(write: (line: string) => void | Promise<void>, { hash, mask }: Required<AuditOptions>) {
  return async ({ run, emit }: Scope, point: Point, record: object, content?: unknown): Promise<void> => {
    const { parent, call } = run;
    const stamp: AuditStamp = {
      time: new Date().toISOString(),
      run: run.id,
      session: run.session,
      ...(parent && call !== undefined && { parent: { run: parent.id, call } }),
    };
    try {
      const input = maskTexts(content, mask);
      const written = input === undefined ? {} : hash ? { sha256: await hashOf(canonicalJson(input)) } : { input };
      await write(`${JSON.stringify({ ...stamp, ...record, ...written })}\n`);
    } catch (cause) {
      const error = run.report(cause);
      const message = `An audit record is missing: ${cause instanceof Error ? cause.name : typeof cause}.`;
      emit({ type: "warning", code: "hook.failed", message, middleware: "audit", point, error });
    }
  };
}

/** Masks the texts, the numbers and the keys of an input. */
function maskTexts(input: unknown, mask: (text: string) => string): unknown {
  const maskLeaf = (leaf: unknown) => {
    const text = typeof leaf === "string" || typeof leaf === "number" ? String(leaf) : undefined;
    const masked = text === undefined ? undefined : mask(text);
    return masked === text ? leaf : masked;
  };
  return mapLeaves(input, maskLeaf, mask);
}

function since(start: number): number {
  return Math.round(performance.now() - start);
}
