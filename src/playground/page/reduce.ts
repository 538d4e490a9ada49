/**
 * The page's state: each event turns a view into the next one.
 *
 * @module
 */
import * as spans from "./spans.ts";
import * as entries from "./view.ts";
import { type Entry, type Frame, verdictOf, type View } from "./view.ts";
import type { Event } from "../../protocol/event.ts";

/** When an event arrived, its number, and the path of the subagent calls that it comes from, such as `call_1/`. */
interface Moment {
  readonly id: number;
  readonly now: number;
  readonly path: string;
}

/** An event that arrived. */
interface Arrival<T extends Event["type"]> extends Moment {
  readonly event: Extract<Event, { readonly type: T }>;
}

type Handlers = { readonly [T in Event["type"]]?: (view: View, arrival: Arrival<T>) => View };

/** Reduces the events of the run and of its subagents. */
const handlers: Handlers = {
  "session.opened"(view, at) {
    const opened = openSpan(view, at, { place: "session", parent: "", name: "session" }, parentCall(at));
    const isResumed = !at.path && view.spans.length > 0; // those from before the pause
    return isResumed ? spans.annotate(opened, "session", "▶ resumed") : opened;
  },
  "session.closed": (view, at) => close(close(view, at, "prompt"), at, "session"),
  "prompt.accepted"(view, at) {
    const opened = openSpan(view, at, { place: "prompt", parent: "session", name: "prompt" });
    const text = textOf(at.event.prompt.parts);
    return at.path ? opened : entries.put(opened, { kind: "you", key: "you", text });
  },
  "turn.started"(view, at) {
    const parent = spans.isOpen(view, at.path + "prompt") ? "prompt" : "session";
    return openSpan(view, at, { place: `turn ${at.event.turn}`, parent, name: `turn ${at.event.turn}` });
  },
  "turn.finished": (view, at) => close(view, at, `turn ${at.event.turn}`),

  "model.started"(view, at) {
    const { turn, model } = at.event;
    const started = entries.putTurn(entries.removeTurn(view, at.path, turn), at.path, { turn, model });
    return openSpan(started, at, {
      place: `model ${turn}`,
      parent: `turn ${turn}`,
      name: `model ${model}`,
      subject: `${view.run} ${at.path}${turn}`,
    });
  },
  "model.requested": (view, { event, path }) => entries.putTurn(view, path, { turn: event.turn, request: event }),
  "model.reset": (view, { event: { turn }, path }) =>
    spans.annotate(entries.removeTurn(view, path, turn), `${path}model ${turn}`, "started over"),
  "model.finished"(view, at) {
    const { turn, finish, attempts, text, usage } = at.event;
    const outcome = attempts > 1 ? `${finish}, ${attempts} attempts` : finish;
    const ended = close(entries.putTurn(view, at.path, { turn, usage }), at, `model ${turn}`, outcome);
    if (text === undefined) return ended;
    const removed = entries.removeTurn(ended, at.path, turn, "agent");
    return entries.append(removed, at.path, { kind: "agent", turn, key: `${turn}.final` }, text);
  },
  "text.delta": (view, { event: { turn, part, text }, path }) =>
    entries.append(view, path, { kind: "agent", turn, key: `${turn}.${part}` }, text),
  "reasoning.delta": (view, { event: { turn, part, text }, path }) =>
    entries.append(view, path, { kind: "thought", turn, key: `${turn}.${part}` }, text),

  "call.ready"(view, { event: { turn, call: { id, name, input } }, path }) {
    const call = { name, input: textOfJson(input), status: "ready", text: "" };
    return entries.put(view, { kind: "call", turn, key: path + id, ...call });
  },
  "provider_tool.started"(view, at) {
    const { turn, content: { callId, name, input } } = at.event;
    const call = { name, input: textOfJson(input), status: "at the provider", text: "" };
    const started = entries.put(view, { kind: "call", turn, key: `${at.path}provider ${callId}`, ...call });
    return openSpan(started, at, {
      place: `provider ${callId}`,
      parent: `model ${turn}`,
      name,
      kind: "call",
      batch: callId,
      subject: `${view.run} ${at.path}provider ${callId}`,
    });
  },
  "provider_tool.finished"(view, at) {
    const { callId, status, output } = at.event.content;
    const finished = entries.change(view, `${at.path}provider ${callId}`, { status, text: textOfJson(output) });
    return close(finished, at, `provider ${callId}`, status);
  },
  "tool.started"(view, at) {
    const { call, turn, name, batch } = at.event;
    const started = entries.change(view, at.path + call, { status: "started" });
    return openSpan(started, at, {
      place: `call ${call}`,
      parent: `turn ${turn}`,
      name,
      kind: "call",
      batch,
      subject: `${view.run} ${at.path}${call}`,
    });
  },
  "approval.asked"(view, at) {
    const { call } = at.event;
    const asked = entries.change(view, at.path + call, { status: "asks you" });
    return openSpan(asked, at, { place: `asked ${call}`, parent: `call ${call}`, name: "a person is asked" });
  },
  "approval.decided"(view, { event: { call, decision, by }, path }) {
    const verdict = verdictOf(decision, by);
    const decided = entries.change(view, path + call, { status: verdict, verdict });
    return spans.annotate(decided, `${path}call ${call}`, "", { verdict });
  },
  "tool.progress": (view, { event: { call, data }, path }) =>
    entries.change(view, path + call, { status: `running: ${textOfJson(data)}` }),
  "tool.finished"(view, at) {
    const { call, result: { status, parts } } = at.event;
    const finished = entries.change(view, at.path + call, { status, text: textOf(parts) });
    return close(finished, at, `call ${call}`, status);
  },

  "hook.acted": (view, { event, id, now, path }) => spans.addHook(view, now, `${id}`, path, event),
  "subagent.event": (view, { event: { call, event }, id, now, path }) =>
    apply(handlers, view, { event, id, now, path: `${path}${call}/` }),
  "compact.started": (view, at) =>
    openSpan(view, at, { place: "compact", parent: "session", name: `compact (${at.event.trigger})` }),
  "compact.finished": (view, at) => close(view, at, "compact", at.event.status),
  "notice": (view, { event: { text }, id }) => entries.put(view, { kind: "note", key: `note ${id}`, text }),
  "warning": (view, { event: { message }, id }) =>
    entries.put(view, { kind: "note", key: `note ${id}`, text: `Warning: ${message}` }),
  "steering.injected"(view, { event: { messages }, id }) {
    const text = messages.map(({ parts }) => textOf(parts)).join("\n");
    const delivered = view.entries.filter(({ key }) => !key.startsWith("waits ")); // now they are in the conversation
    return entries.put({ ...view, entries: delivered }, { kind: "you", key: `steered ${id}`, text });
  },
};

/** Reduces the events of the run itself. */
const runHandlers: Handlers = {
  "run.started"(view, { event: { run, session }, now }) {
    const { pausedSince = now, resumeToken: _, ...rest } = view;
    const past = view.spans.map((span) => ({ ...span, place: "" })); // spans from before a pause get no children
    const waited = view.waited + now - pausedSince;
    return { ...rest, run, session, status: "running", questions: [], waited, spans: past };
  },
  "run.paused"(view, { event: { questions, resumeToken }, now }) {
    const paused = {
      ...spans.explainThrown(spans.closeAll(spans.annotateSession(view, "‖ paused"), now), "paused"),
      status: "paused",
      questions,
      pausedSince: now,
    };
    return resumeToken === undefined ? paused : { ...paused, resumeToken };
  },
  "run.finished"(view, { event: { status, reason }, id, now }) {
    const text = reason === undefined ? status : `${status}: ${reason}`;
    return end(view, { id, now, status }, status === "done" ? undefined : { text });
  },
  "run.failed"(view, { event: { message, code, error }, id, now }) {
    const failure = { code, id: error, ...(view.run !== undefined && { run: view.run }) };
    return end(view, { id, now, status: "failed" }, { text: message, failure });
  },
  "run.aborted": (view, { event: { reason }, id, now }) =>
    end(spans.explainThrown(view, "stopped"), { id, now, status: "aborted" }, { text: `Stopped: ${reason}` }),
};

/** Adds an event that arrived at `now`, in milliseconds since 1970. An event that the view contains already changes nothing. */
export function reduce(view: View, { id, event }: Frame, now: number): View {
  if (id <= view.at) return view;
  const arrival = { event, id, now, path: "" };
  return { ...apply(runHandlers, apply(handlers, view, arrival), arrival), at: id };
}

function apply(table: Handlers, view: View, arrival: Arrival<Event["type"]>): View {
  const handle = table[arrival.event.type] as ((view: View, arrival: unknown) => View) | undefined; // takes this type
  return handle ? handle(view, arrival) : view;
}

/** Returns the place of the call that a subagent works for. */
function parentCall({ path }: Moment): string {
  return path.replace(/([^/]*)\/$/, "call $1");
}

function openSpan(
  view: View,
  { id, now, path }: Moment,
  { place, parent, ...span }: Omit<spans.NewSpan, "key">,
  parentPlace: string = path + parent,
): View {
  return spans.openSpan(view, now, { ...span, key: `${id}`, place: path + place, parent: parentPlace });
}

function close(view: View, { now, path }: Moment, place: string, outcome?: string): View {
  return spans.close(view, now, path + place, outcome);
}

/** Ends the run, with a note if there is something to report. */
function end(
  view: View,
  { id, now, status }: Pick<Moment, "id" | "now"> & Pick<View, "status">,
  note?: Pick<Entry, "text" | "failure">,
): View {
  const ended = { ...spans.closeAll(view, now), status, questions: [] };
  return note ? entries.put(ended, { kind: "note", key: `end ${id}`, ...note }) : ended;
}

function textOf(
  parts: readonly { readonly type: string; readonly text?: string; readonly mediaType?: string }[],
): string {
  return parts.map(({ text, mediaType }) => text ?? `[${mediaType}]`).join("\n");
}

function textOfJson(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
}
