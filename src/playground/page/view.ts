/**
 * The state of the page. It is plain JSON, so that the page can store it over a reload.
 *
 * @module
 */
import type { Decider, Decision, Event, HookAct, HookChange } from "../../protocol/event.ts";
import { addUsage, costOf, type Price, type Usage } from "../../protocol/message.ts";
import type { Question } from "../../protocol/question.ts";

// Changes of the conversation in a view. The keys that they take are unique within a run.

/** Adds an entry, or replaces the one with its key. */
export function put(view: View, entry: Entry): View {
  const key = `${view.run} ${entry.key}`;
  const index = view.entries.findIndex((each) => each.key === key);
  const merged = { ...view.entries[index], ...entry, key };
  return { ...view, entries: index < 0 ? [...view.entries, merged] : view.entries.with(index, merged) };
}

/** Appends text to an entry, or adds it. `path` names the subagent that wrote the text. */
export function append(view: View, path: string, entry: Omit<Entry, "text">, text: string): View {
  const key = `${path}${entry.key}`;
  const before = view.entries.find((each) => each.key === `${view.run} ${key}`)?.text ?? "";
  return put(view, { ...entry, key, text: before + text, ...(path && { name: path.slice(0, -1) }) });
}

/** Changes the entry with this key, if there is one. */
export function change(view: View, ownKey: string, fields: Partial<Entry>): View {
  const key = `${view.run} ${ownKey}`;
  return { ...view, entries: view.entries.map((each) => each.key === key ? { ...each, ...fields } : each) };
}

/** Removes the entries of a turn, or only the entries of one kind. */
export function removeTurn(view: View, path: string, turn: number, kind?: Entry["kind"]): View {
  const isRemoved = (entry: Entry) =>
    turnKeyOf(entry) === `${view.run} ${path}${turn}` && (kind === undefined || entry.kind === kind);
  return { ...view, entries: view.entries.filter((entry) => !isRemoved(entry)) };
}

/** Adds a model request, or the fields of one. `path` names the subagent that made it. */
export function putTurn(view: View, path: string, turn: Pick<Turn, "turn"> & Partial<Turn>): View {
  const { run = "", turns } = view;
  const key = `${run} ${path}${turn.turn}`;
  const index = turns.findIndex((each) => each.key === key);
  const merged = { model: "", ...turns[index], ...turn, run, key };
  return { ...view, turns: index < 0 ? [...turns, merged] : turns.with(index, merged) };
}

/** Returns the key of the turn in which the agent or a subagent wrote an entry, or undefined for an entry outside turns. */
export function turnKeyOf({ key, turn }: Entry): string | undefined {
  if (turn === undefined) return undefined;
  return key.slice(0, Math.max(key.lastIndexOf("/"), key.indexOf(" ")) + 1) + turn;
}

// Plain words for the acts of hooks and for decisions.

/** The kinds of acts that the page tells apart. */
export type ActKind = "passed" | "changed" | "answered" | "denied" | "asked" | "paused" | "failed";

/** An act of a hook, in words. */
export interface Act {
  readonly kind: ActKind;
  readonly text: string;
}

/** The legend: each kind with its symbol, its name and its meaning. */
export const legend: readonly { readonly kind: ActKind; readonly symbol: string; readonly meaning: string }[] = [
  { kind: "passed", symbol: "→", meaning: "changed nothing" },
  { kind: "changed", symbol: "✎", meaning: "the input, the result, or tried again" },
  { kind: "answered", symbol: "↩", meaning: "in place of what is inside" },
  { kind: "denied", symbol: "✕", meaning: "the call may not run" },
  { kind: "asked", symbol: "?", meaning: "a person decides" },
  { kind: "paused", symbol: "‖", meaning: "until a person answers" },
  { kind: "failed", symbol: "!", meaning: "threw an error" },
];

/** Words for keys whose names say little outside the code. */
const nouns: Readonly<Record<string, string>> = { emit: "events", signal: "cancellation" };

/** Returns the symbol of a kind. */
export function symbolOf(kind: ActKind): string {
  return legend.find((each) => each.kind === kind)?.symbol ?? "";
}

/** Returns the acts of a hook, in words. */
export function actsOf({ acts = [], changed = [], decided }: Span): readonly Act[] {
  return acts.map((act): Act => {
    switch (act) {
      case "changed":
        return { kind: "changed", text: `changed the ${changed.map((key) => nouns[key] ?? key).join(" and the ")}` };
      case "retried":
        return { kind: "changed", text: "tried again" };
      case "answered":
        return decisionOf(decided) ?? { kind: "answered", text: "answered" };
      case "replaced":
        return decisionOf(decided) ?? { kind: "changed", text: "changed the result" };
      case "threw":
        return { kind: "failed", text: "failed" };
      case "stopped":
        return { kind: "paused", text: "stopped" };
      default:
        return { kind: act, text: act };
    }
  });
}

/** Returns the decision that a hook made itself, if the point decides about a call. */
function decisionOf(decided: string | undefined): Act | undefined {
  if (decided === "deny" || decided === "denied") return { kind: "denied", text: "denied" };
  if (decided === "ask") return { kind: "asked", text: "asked" };
  return decided === "allow" ? { kind: "answered", text: "answered: allowed" } : undefined;
}

/** Returns a decision about a call and its origin, in words. */
export function verdictOf(decision: Decision, by: Decider): string {
  const origins = { policy: "by policy", person: "by a person", rule: "by a standing rule" } as const;
  const acts = by === "person" ? { allow: "approved", deny: "denied" } : { allow: "allowed", deny: "denied" };
  return `${acts[decision]} ${origins[by]}`;
}

// Tokens and their cost.

/** Prices of a million tokens by the id of the model. */
export type Prices = Readonly<Record<string, Price>>;

/** Tokens, and their cost if all models have a price. */
export interface Spending extends Required<Usage> {
  readonly cost?: number;
}

/** Adds up the tokens and the cost of model requests. Returns undefined if none of them is complete. */
export function spendingOf(turns: readonly Turn[], prices: Prices): Spending | undefined {
  const complete = turns.flatMap(({ usage, model }) => usage ? [{ usage, price: prices[model] }] : []);
  if (complete.length === 0) return undefined;
  const tokens = { cached: 0, cacheWrite: 0, reasoning: 0, ...complete.map(({ usage }) => usage).reduce(addUsage) };
  const costs = complete.flatMap(({ usage, price }) => price ? [costOf(usage, price)] : []);
  return costs.length < complete.length ? tokens : { ...tokens, cost: costs.reduce((sum, cost) => sum + cost) };
}

/** Writes numbers as the page does. */
const count = new Intl.NumberFormat("en");
const amount = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** Returns the tokens and the cost as words. */
export function wordsOf({ input, output, cached, reasoning, cost }: Spending): string {
  const words = [`${count.format(input)} tokens in`, `${count.format(output)} out`];
  if (cached > 0) words.push(`${count.format(cached)} cached`);
  if (reasoning > 0) words.push(`${count.format(reasoning)} reasoning`);
  if (cost !== undefined) words.push(`cost ${amount.format(cost)}`);
  return words.join(" · ");
}

/** Returns a duration as words. */
export function timeOf(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1_000 ? `${ms.toFixed(0)} ms` : `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

// The view.

/** An event and its number in the run. */
export interface Frame {
  readonly id: number;
  readonly event: Event;
}

/** A conversation and its current run. */
export interface View {
  /** The number of the last event of the run that the view contains. */
  readonly at: number;
  readonly run?: string;
  readonly session?: string;
  /** `idle` before the first run, `starting` before its first event, and then the status of the run. */
  readonly status: string;
  /** The prompt of the current run. */
  readonly prompt: string;
  /** The conversation. */
  readonly entries: readonly Entry[];
  /** The model requests of the conversation. */
  readonly turns: readonly Turn[];
  /** The spans of the current run. */
  readonly spans: readonly Span[];
  /** The earlier runs of the conversation, oldest first. */
  readonly past: readonly RunRecord[];
  /** The open questions. */
  readonly questions: readonly Question[];
  readonly resumeToken?: string;
  /** The start of the run, in milliseconds since 1970. */
  readonly began: number;
  /** The milliseconds during which the run was paused. */
  readonly waited: number;
  /** The start of the current pause, in milliseconds since 1970. */
  readonly pausedSince?: number;
}

/** One entry of the conversation. */
export interface Entry {
  readonly key: string;
  readonly kind: "you" | "agent" | "thought" | "call" | "note";
  readonly turn?: number;
  readonly text: string;
  /** The tool of a call, or the call of the subagent that wrote a text. */
  readonly name?: string;
  /** The input of a call, as text. */
  readonly input?: string;
  /** The input that a person put in its place, as text. */
  readonly edited?: string;
  /** The status of a call. */
  readonly status?: string;
  /** The decision about a call and its origin, in words. */
  readonly verdict?: string;
  /** The failure that a note reports. */
  readonly failure?: Failure;
}

/** A failure of a run or of a request. */
export interface Failure {
  readonly code: string;
  /** The id under which the server reports the error. Missing for a request that the server refused. */
  readonly id?: string;
  /** The run that failed. Missing if the request failed before its run began. */
  readonly run?: string;
}

/** One model request: its model, and the tokens it used. */
export interface Turn {
  readonly key: string;
  readonly run: string;
  readonly turn: number;
  readonly model: string;
  /** Missing until the response is complete. */
  readonly usage?: Usage;
  /** The last request as it was sent. Missing without a trace. */
  readonly request?: ModelRequested;
}

/** A request to a model. */
export type ModelRequested = Extract<Event, { readonly type: "model.requested" }>;

/** A run that is over, with its trace. */
export interface RunRecord {
  readonly run: string;
  readonly prompt: string;
  readonly status: string;
  /** The milliseconds that it took, without its pauses. */
  readonly ms: number;
  readonly spans: readonly Span[];
}

/** A part of the run that took time: a point, a call, or a hook. */
export interface Span {
  readonly key: string;
  /** The scope of the span, such as `turn 1` or `call call_1`; empty for a hook. */
  readonly place: string;
  /** The key of the span that contains this one; empty if none does. */
  readonly parent: string;
  /** Whether it wraps the work of its parent, as a hook wraps its point. */
  readonly isWrapper: boolean;
  readonly kind: "point" | "call" | "hook";
  /** The point of a hook. */
  readonly point?: string;
  readonly name: string;
  /** The start, in milliseconds since the run began. */
  readonly from: number;
  /** The end, in milliseconds since the run began; missing while the span is open. */
  readonly to?: number;
  /** The result, or the decision of a hook. */
  readonly outcome: string;
  /** The acts of a hook. A hook that threw because the run was paused or stopped has that act in place of "threw". */
  readonly acts?: readonly (HookAct | "paused" | "stopped")[];
  /** The keys that a hook changed. */
  readonly changed?: readonly string[];
  /** The values that a hook changed. */
  readonly changes?: readonly HookChange[];
  /** The decision that a hook returned. */
  readonly decided?: string;
  /** The decision about a call and its origin, in words. */
  readonly verdict?: string;
  /** The key of the model request, or of the entry of a call, that the span is about. */
  readonly subject?: string;
  /** The group of a call: calls of a group run at the same time. */
  readonly group?: string;
}

/** Whether the run of a view is running, or about to begin. */
export function isRunning({ status }: Pick<View, "status">): boolean {
  return status === "running" || status === "starting";
}

/** The most runs whose traces are kept. */
const keptRuns = 30;

/** The view before the first message. */
export const emptyView: View = {
  at: 0,
  status: "idle",
  prompt: "",
  entries: [],
  turns: [],
  spans: [],
  past: [],
  questions: [],
  began: 0,
  waited: 0,
};

/** Returns the view in which a new run of the conversation starts. The run before it is recorded. */
export function startRun(view: View, prompt: string, now: number): View {
  const { session, entries, turns, past } = view;
  return {
    ...emptyView,
    ...(session !== undefined && { session }),
    entries,
    turns,
    past: view.run === undefined ? past : [...past, recordOf(view, now)].slice(-keptRuns),
    prompt,
    status: "starting",
    began: now,
  };
}

/** Returns the record of the current run. */
export function recordOf({ run = "", prompt, status, spans, ...view }: View, now: number): RunRecord {
  const isOver = status !== "running" && status !== "starting" && status !== "paused";
  const ended = Math.max(0, ...spans.map(({ to = 0 }) => to));
  return { run, prompt, status, spans, ms: isOver ? ended : elapsed(view, now) };
}

/** Returns the milliseconds since the run began, without its pauses. */
export function elapsed({ began, waited, pausedSince }: Pick<View, "began" | "waited" | "pausedSince">, now: number) {
  return Math.max(0, (pausedSince ?? now) - began - waited);
}

/** The course of a run, for a comparison with another one. */
export interface Summary {
  readonly status: string;
  /** The calls, with their inputs and outcomes. */
  readonly calls: string;
  readonly answer: string;
  readonly tokens: string;
  readonly time: string;
}

/** Summarizes a run of a view. */
export function summaryOf({ entries, turns }: View, { run, status, ms }: RunRecord, prices: Prices): Summary {
  const runEntries = entries.filter(({ key }) => key.startsWith(`${run} `));
  const spending = spendingOf(turns.filter((turn) => turn.run === run), prices);
  return {
    status,
    calls: runEntries.flatMap(({ kind, name, input = "", status }) =>
      kind === "call" ? [`${name} ${input.replace(/\s+/g, " ")}: ${status}`] : []
    ).join("\n"),
    answer: runEntries.flatMap(({ kind, text }) => kind === "agent" ? [text] : []).join("\n\n"),
    tokens: spending ? wordsOf(spending) : "",
    time: timeOf(ms),
  };
}
