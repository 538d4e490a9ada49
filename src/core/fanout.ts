/**
 * The fan-out: the calls of one response go in one after another, run all at once, and come out one after another.
 *
 * @module
 */
import type { Question } from "../protocol/question.ts";
import { type AssistantMessage, type Call, type CallResult, callsOf, type ToolResult } from "../protocol/message.ts";
import type { OpenBatch, PendingResult, Session, StartedCall } from "../protocol/session.ts";
import { Entry } from "./entry.ts";
import { judge } from "./failure.ts";
import { End, isInterrupt, Pause, Paused } from "./interrupt.ts";
import type { Live } from "./live.ts";
import { bounded, commit, type Cut, cutBy, notRun, pauseOf, resultOf, withheld } from "./outcome.ts";
import { perform, stopped } from "./perform.ts";
import type { Scope } from "./scope.ts";
import type { RunningBatch } from "./way.ts";

/** A batch to run: the message that makes the calls, and how far they are where it goes on after a pause. */
export interface Batch extends Partial<OpenBatch> {
  readonly message: AssistantMessage;
  readonly turn: number;
  /** Whether it goes on after a pause. */
  readonly resumed?: boolean;
}

/** Runs one batch and adds it to the transcript: one result for each call, in the model's order, whatever happens. */
export async function runBatch(live: Live, scope: Scope, batch: Batch): Promise<readonly CallResult[]> {
  const { message, results = [], started = [], children = {}, resumed = false } = batch;
  const answered = new Map(results.map((result) => [result.callId, result]));
  const running = {
    message,
    results: answered,
    started: new Map(started.map((call) => [call.callId, call])),
    children: new Map(Object.entries(children)),
  };
  const entries = enter(live, batch, running);
  live.batch = running;
  live.open = entries.map((entry) => entry.call);
  const tell = (entry: Entry, came: ToolResult) => answered.set(entry.call.id, finish(live, scope, entry, came));
  const giveUp = () => {
    for (const entry of entries) {
      shut(entry.gate, new End("the run is over"));
      if (!answered.has(entry.call.id)) tell(entry, stopped);
    }
    commit(live, message, answered);
  };
  live.unfinished = giveUp;
  live.checkpoint();

  const cut = await goIn(live, scope, entries, resumed);
  if (!cut) await (live.keeping?.steady ? workOnRecord(live, entries, running) : Promise.all(entries.map(work)));
  live.gather();
  for (const entry of entries) {
    await comeOut(entry, cut);
    if (!entry.waiting) tell(entry, resultOf(entry, cut));
  }

  const fatal = await fatalOf(live, scope, entries);
  const waiting = entries.filter((entry) => entry.waiting);
  if (waiting.length > 0 && fatal.length === 0 && !live.ended && !live.aborted) {
    throw pauseWith(live, running, waiting, cut);
  }
  for (const entry of waiting) tell(entry, resultOf(entry, cut));
  if (live.unfinished !== giveUp) return []; // given up, and nobody waits for it
  const kept = live.ended?.withhold
    ? commit(live, message, new Map(), withheld(live.ended))
    : commit(live, message, answered);
  live.turning = "done";
  if (fatal.length > 0) throw fatal[0];
  live.checkpoint();
  live.open = [];
  return kept;
}

/** Pauses the run, which goes on with what is open of the batch. */
function pauseWith(
  live: Live,
  { message, results }: RunningBatch,
  waiting: readonly Entry[],
  cut: Cut | undefined,
): Pause {
  live.unfinished = undefined;
  live.batch = undefined;
  live.open = [];
  const batch = { message, results: [...results.values()], ...startedOf(waiting), ...childrenOf(waiting) };
  return live.hold(cut?.pause ?? new Pause(questionsOf(waiting)), { batch });
}

/** The entries of the calls that have no result yet. */
function enter(live: Live, { turn, resumed }: Batch, { message, results, started, children }: RunningBatch): Entry[] {
  live.used.batches++;
  const batchId = `${live.id}:${live.used.batches}`;
  live.pending = undefined;
  const calls = callsOf(message);
  if (!resumed) live.used.calls += calls.length;
  const room = live.limits.calls - (live.used.calls - calls.length);
  const entries: Entry[] = [];
  for (const [index, { type: _, ...call }] of calls.entries()) {
    if (results.has(call.id)) continue;
    const entry = new Entry(live, call, index, batchId, turn, index >= room, started.get(call.id));
    entry.child = children.get(call.id);
    entries.push(entry);
  }
  return entries;
}

/** ① One after another; gives why nothing may run, where nothing may. */
async function goIn(live: Live, scope: Scope, entries: readonly Entry[], resumed: boolean): Promise<Cut | undefined> {
  for (const entry of entries) {
    entry.onion = pass(live, scope, entry, resumed);
    await entry.parked.promise;
    entry.waiting = entry.step?.type === "ask";
    const cut = cutBy(entry);
    if (!cut) continue;
    for (const each of entries) each.waiting = cut.pause !== undefined;
    return cut;
  }
  return undefined;
}

/** The whole way of one call, in and out. */
async function pass(live: Live, scope: Scope, entry: Entry, resumed: boolean): Promise<void> {
  try {
    begin(live, scope, entry);
    entry.result = await live.blueprint.onions.tool(entry.context(scope, resumed), entry);
  } catch (error) {
    if (error instanceof End) live.ended ??= error;
    entry.failures.push(error);
  }
  entry.parked.resolve();
}

/** Tells whoever watches of a call, once. */
function begin(live: Live, scope: Scope, entry: Entry): void {
  if (entry.begun) return;
  entry.begun = true;
  const { call: { id: call, name }, index, batchId: batch, turn } = entry;
  live.events.announce(scope.emit, { type: "tool.started", turn, call, name, batch, index });
}

/** ② The work. A failure is that call's result; siblings go on. */
async function work(entry: Entry): Promise<void> {
  if (entry.step?.type !== "execute") return;
  try {
    entry.raw = await perform(entry, entry.step);
  } catch (error) {
    entry.failures.push(error);
    entry.waiting = error instanceof Pause;
    entry.raw = stopped;
  }
}

/** The work, where it is on record which calls were let run, and what each came to as soon as it has. */
async function workOnRecord(
  live: Live,
  entries: readonly Entry[],
  { started, children }: { readonly started: Map<string, StartedCall>; readonly children: Map<string, Session> },
): Promise<void> {
  for (const { step, call: { id: callId } } of entries) {
    if (step?.type !== "execute" || started.has(callId)) continue;
    started.set(callId, { callId, tool: step.tool.name, input: step.raw });
  }
  if (started.size > 0) await live.keep();
  if (live.aborted) return;
  await Promise.all(entries.map(async (entry) => {
    await work(entry);
    const { call: { id }, raw, waiting, child } = entry;
    const call = started.get(id);
    if (!call || !raw) return;
    if (waiting) started.delete(id); // it goes in again
    else started.set(id, { ...call, raw });
    if (waiting && child) children.set(id, child);
    await live.keep().catch((error) => entry.failures.push(error));
  }));
}

/** ③ One after another: each onion ends before the next goes on. One whose hook pauses the run goes in and out again later, with what the work came to. */
async function comeOut(entry: Entry, cut: Cut | undefined): Promise<void> {
  const { live, step, call, gate, raw } = entry;
  entry.waiting &&= !live.ended && !live.aborted;
  if (!step || entry.waiting) shut(gate, new Paused(call.id));
  else gate.resolve(raw ?? (step.type === "answer" ? step.result : notRun(cut ?? cutBy(entry))));
  await entry.onion;
  if (pauseOf(entry)) entry.waiting = !live.ended && !live.aborted;
}

/** Unwinds whoever waits at `gate`. */
function shut({ promise, reject }: Entry["gate"], error: Error): void {
  promise.catch(() => {}); // where nobody does
  reject(error);
}

/** The result of a call that has come out, told to whoever watches. */
function finish(live: Live, scope: Scope, entry: Entry, came: ToolResult): PendingResult {
  const { status, parts, context = [], person, silent, artifacts, handled } = came;
  const { call, turn, note } = entry;
  const said = note === undefined ? context : [...context, note];
  const result = {
    callId: call.id,
    name: call.name,
    status,
    parts: bounded(parts, live.limits.output),
    ...(artifacts && { artifacts }),
    ...(handled && status === "ok" && { handled }),
  };
  try {
    begin(live, scope, entry);
    const shown = silent ? { ...result, parts: [] } : result;
    live.events.announce(scope.emit, { type: "tool.finished", turn, call: call.id, result: shown });
    if (person !== undefined && !silent) scope.emit({ type: "notice", text: person });
  } catch (error) {
    entry.failures.push(error);
  }
  return { ...result, ...(said.length > 0 && { context: said }) };
}

function questionsOf(entries: readonly Entry[]): Question[] {
  return entries.flatMap((entry) => {
    const { step } = entry;
    return step?.type === "ask" ? [step.question] : pauseOf(entry)?.questions ?? [];
  });
}

/** What is known of work that was let run before the pause. */
function startedOf(entries: readonly Entry[]): Pick<OpenBatch, "started"> {
  const started = entries.flatMap(({ call: { id: callId }, step, raw, started }) => {
    if (step?.type !== "execute" || !raw) return started ? [started] : [];
    return raw === stopped ? [] : [{ callId, tool: step.tool.name, input: step.raw, raw }];
  });
  return started.length > 0 ? { started } : {};
}

/** The sessions of the agents that wait for a person. */
function childrenOf(entries: readonly Entry[]): Pick<OpenBatch, "children"> {
  const waiting = entries.flatMap(({ call, child }) => child ? [[call.id, child] as const] : []);
  return waiting.length > 0 ? { children: Object.fromEntries(waiting) } : {};
}

/** Lets `error` decide about hooks that failed; gives what the run cannot go on after. */
async function fatalOf(live: Live, scope: Scope, entries: readonly Entry[]): Promise<readonly unknown[]> {
  const fatal: unknown[] = [];
  for (const { failures, waiting, call } of entries) {
    for (const error of failures) {
      if (waiting) unwound(live, error);
      else if (await isFatal(live, scope, call, error)) fatal.push(error);
    }
  }
  const others = live.aborted ? [] : fatal.slice(1); // the first is what the run ends with
  for (const error of others) if (!isInterrupt(error)) live.events.report(error);
  return fatal;
}

/** A call that waits goes on later, whatever a hook made of that. */
function unwound(live: Live, error: unknown): void {
  if (isInterrupt(error)) return;
  live.events.warn("hook.failed", "A hook failed while its call waited.", { point: "tool", error });
}

async function isFatal(live: Live, scope: Scope, call: Call, error: unknown): Promise<boolean> {
  if (error instanceof Pause) live.hold(error);
  if (isInterrupt(error) || live.aborted || live.judged.has(error)) return true;
  const { type } = await judge(live, scope, { error, source: "tool", recoverable: false, attempt: 1, call });
  return type === "abort";
}
