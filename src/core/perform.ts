/**
 * The work itself: one call, with a place among those that run, until it is done, failed, or left behind.
 *
 * @module
 */
import type { ToolResult } from "../protocol/message.ts";
import { delay, withGracePeriod } from "./abandon.ts";
import { failed } from "./answers.ts";
import { canonicalJson } from "./canonical.ts";
import type { Entry, Step } from "./entry.ts";
import { judge } from "./failure.ts";
import { isInterrupt } from "./interrupt.ts";
import { lawOf } from "./law.ts";
import type { Law } from "./onion.ts";
import type { ExecuteContext } from "./points.ts";
import { resultBy, resultOf } from "./prepare.ts";
import { result } from "./result.ts";
import type { Change, Scope } from "./scope.ts";
import { childOf } from "./child.ts";
import { type AnyTool, ToolError } from "./tool.ts";

/** The law of `execute`. */
export const executeLaw: Law<ExecuteContext, Change, ToolResult, Entry> = lawOf("execute", [], {
  again: (ctx) => ctx,
  derive: (beneath, above, entry) =>
    beneath.emit === above.emit ? beneath : { ...beneath, progress: progressOf(beneath, entry) },
  seal: ({ name, returned }) => resultBy(name, "execute", returned),
});

/** Tells how far a call is, until it is done: one that was left behind is not heard any more. */
function progressOf({ emit }: Scope, entry: Entry): (data: unknown) => void {
  const { turn, call } = entry;
  return (data) => {
    if (!entry.raw) emit({ type: "tool.progress", turn, call: call.id, data });
  };
}

/** The core of `execute`: runs the tool. */
export async function execute(ctx: ExecuteContext, entry: Entry): Promise<ToolResult> {
  const { live } = entry;
  const at = live.at(ctx.signal);
  if (at.aborted) throw at.reason;
  const child = childOf(ctx.tool);
  if (child) return await child(ctx, entry); // it waits for tools of its own: it must not hold a place they need
  const wait = live.slots.take(at);
  if (wait) await wait;
  try {
    if (live.inbox.skipping) return live.inbox.skipping;
    const returned = ctx.tool.execute(ctx.input as never, ctx); // parsed by its own schema
    if (!(returned instanceof Promise)) return resultOf(returned);
    return resultOf(await withGracePeriod(returned, at, live.limits.grace, () => left(ctx, entry)));
  } finally {
    live.slots.give();
  }
}

function left({ tool }: ExecuteContext, { live }: Entry): void {
  live.events.warn("tool.abandoned", `The tool ${tool.name} did not stop when it was told to.`, { point: "execute" });
}

/** Runs an approved call through `execute`; a failure is its result. */
export async function perform(
  entry: Entry,
  { tool, input, raw, scope }: Extract<Step, { type: "execute" }>,
): Promise<ToolResult> {
  const { live, call, index, batchId, turn } = entry;
  const before = ranBefore(entry, tool, raw);
  if (before) return { ...before, input: raw };
  const { run, signal, emit, vars } = scope;
  const ctx: ExecuteContext = {
    run,
    signal,
    emit,
    vars,
    call,
    tool,
    input,
    callId: call.id,
    batchId,
    callIndex: index,
    turn,
    idempotencyKey: `${live.id}:${call.id}:${turn}`,
    progress: progressOf(scope, entry),
  };
  for (let attempt = 1, after = 0;; attempt++) {
    try {
      if (after > 0) await delay(after, signal);
      const came = await live.blueprint.onions.execute(ctx, entry);
      return came.input === undefined ? { ...came, input: raw } : came;
    } catch (error) {
      if (isInterrupt(error)) throw error;
      if (live.aborted) return { ...stopped, input: raw };
      const failed = { error, source: "execute", recoverable: true, attempt, name: tool.name, call } as const;
      const decision = await judge(live, scope, failed);
      if (decision.type === "abort") entry.failures.push(error);
      if (decision.type !== "retry" || signal.aborted) return { ...failure(tool.name, error), input: raw };
      after = decision.after;
    }
  }
}

/** What a call came to that was let run before its process died; nothing where it may run, or run again. */
function ranBefore({ started }: Entry, tool: AnyTool, input: unknown): ToolResult | undefined {
  if (!started) return undefined;
  const same = started.tool === tool.name && canonicalJson(started.input) === canonicalJson(input);
  if (same && started.raw) return started.raw;
  return same && tool.idempotent ? undefined : interrupted;
}

/** What a call came to that was let run, where it cannot be told what it did. */
export const interrupted: ToolResult = result("aborted", "Interrupted: it is not known whether it was done.");

/** What a call came to that was cut short. */
export const stopped: ToolResult = result("aborted", "Stopped before it was done.");

/** What the model is told of a failure: what the tool's author wrote for it, and nothing internal. */
function failure(name: string, error: unknown): ToolResult {
  if (error instanceof ToolError) return failed(error.message);
  return error instanceof DOMException && error.name === "TimeoutError"
    ? result("timeout", `${name} did not finish in time.`)
    : failed(`${name} failed.`);
}
