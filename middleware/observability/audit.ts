/**
 * Keeps a record of what was asked, what ran, and who allowed it.
 *
 * @module
 */
import {
  type ApprovalContext,
  type Call,
  type Decision,
  End,
  type Event,
  isInterrupt,
  type Middleware,
  type Point,
  type ResultStatus,
  type RunResult,
  type Scope,
  textOf,
} from "../../mod.ts";
import { canonicalJson } from "../../src/core/kit.ts";

/** What every record says. */
export interface AuditStamp {
  /** When it was written, in ISO 8601. */
  readonly time: string;
  /** The run's id. */
  readonly run: string;
  /** The session's id. */
  readonly session: string;
}

/** What came in: itself, or where `hash` is set the SHA-256 of its canonical JSON, in hexadecimal. */
export type AuditInput = { readonly input: unknown } | { readonly sha256: string };

/** A prompt, before anything is done about it. */
export type PromptRecord = AuditStamp & AuditInput & { readonly type: "prompt" };

/** A call, when it is over. */
export type CallRecord = AuditStamp & AuditInput & {
  readonly type: "call";
  readonly turn: number;
  /** The call's id. */
  readonly call: string;
  /** The tool that ran, or would have. */
  readonly tool: string;
  /** Whether it was allowed, and by whom; not there where nobody had to decide. */
  readonly decision?: Decision;
  readonly by?: "policy" | "person" | "rule";
  /** How it ended; `ended` or `threw` where a hook ended the run, or failed, before there was a result. */
  readonly status: ResultStatus | "ended" | "threw";
  /** Milliseconds from its way in to its way out, in which it also waits for its batch. */
  readonly ms: number;
};

/** A run, when it ends or pauses. */
export type RunEndRecord = AuditStamp & {
  readonly type: "run";
  readonly status: RunResult["status"] | "threw";
  readonly ms: number;
};

/** One line, parsed. */
export type AuditRecord = PromptRecord | CallRecord | RunEndRecord;

/** How records are written. */
export interface AuditOptions {
  /** Writes the SHA-256 of inputs in their place: it proves what came in to whoever has it. What can be guessed is not hidden by it. Default: false. */
  readonly hash?: boolean;
}

/**
 * Writes a line of JSON for every prompt, every call and every end of a run, and waits until it is written. The first in `use` sees every call; it
 * writes the tool and the input that ran in the end. Where `write` throws, the run goes on, and a warning says that a record is missing: what ran cannot be undone by hiding its result.
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
  { hash = false }: AuditOptions = {},
): Middleware {
  /** What each call was in the end: every call that may run passes here. */
  const final = new WeakMap<Call, Pick<ApprovalContext, "name" | "input">>();

  async function keep({ run, emit }: Scope, point: Point, record: object, input?: unknown): Promise<void> {
    const stamp: AuditStamp = { time: new Date().toISOString(), run: run.id, session: run.session };
    try {
      const came = input === undefined ? {} : hash ? { sha256: await sha256(canonicalJson(input)) } : { input };
      await write(`${JSON.stringify({ ...stamp, ...record, ...came })}\n`);
    } catch (error) {
      const message = `An audit record is missing: ${error instanceof Error ? error.name : typeof error}`;
      emit({ type: "warning", code: "hook.failed", message, middleware: "audit", point });
    }
  }

  return {
    name: "audit",
    async session(ctx, next) {
      const start = performance.now();
      const record = (status: RunEndRecord["status"]) =>
        keep(ctx, "session", { type: "run", status, ms: since(start) });
      try {
        const result = await next();
        await record(result.status);
        return result;
      } catch (error) {
        await record("threw");
        throw error;
      }
    },
    async prompt(ctx, next) {
      if (!ctx.resumed) await keep(ctx, "prompt", { type: "prompt" }, textOf(ctx.prompt));
      return await next();
    },
    async tool(ctx, next) {
      const { call, turn } = ctx;
      const start = performance.now();
      let decided: Pick<CallRecord, "decision" | "by"> = {};
      const emit = (event: Event) => {
        if (event.type === "approval.decided") decided = { decision: event.decision, by: event.by };
        ctx.emit(event);
      };
      const record = (status: CallRecord["status"]) => {
        const { name: tool, input } = final.get(call) ?? ctx;
        return keep(
          ctx,
          "tool",
          { type: "call", turn, call: call.id, tool, ...decided, status, ms: since(start) },
          input,
        );
      };
      try {
        const result = await next({ emit });
        await record(result.status);
        return result;
      } catch (error) {
        if (error instanceof End) await record("ended");
        else if (!isInterrupt(error)) await record("threw"); // a call that waits is recorded when it has been answered
        throw error;
      }
    },
    async approval(ctx, next) {
      final.set(ctx.call, ctx);
      return await next();
    },
  };
}

function since(start: number): number {
  return Math.round(performance.now() - start);
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
