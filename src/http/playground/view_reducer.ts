/**
 * The page's state: each event turns a view into the next one.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { EntryUpdates } from "./entries.ts";
import type { NewSpan, SpanUpdates } from "./spans.ts";
import type { Frame, View } from "./view.ts";

/** Adds an event that arrived at `now`, in milliseconds since 1970. An event that the view contains already changes nothing. */
export type ViewReducer = (view: View, frame: Frame, now: number) => View;

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

/** Creates the reducer. Runs in the page, so it uses nothing outside itself. */
export function viewReducer(spans: SpanUpdates, entries: EntryUpdates): ViewReducer {
  /** Reduces the events of the run and of its subagents. */
  const handlers: Handlers = {
    "session.opened": (view, at) => open(view, at, { place: "session", parent: "", name: "session" }, parentCall(at)),
    "session.closed": (view, at) => close(close(view, at, "prompt"), at, "session"),
    "prompt.accepted"(view, at) {
      const opened = open(view, at, { place: "prompt", parent: "session", name: "prompt" });
      const text = textOf(at.event.prompt.parts);
      return at.path ? opened : entries.put(opened, { who: "you", key: "you", text });
    },
    "turn.started"(view, at) {
      const parent = spans.isOpen(view, at.path + "prompt") ? "prompt" : "session";
      return open(view, at, { place: `turn ${at.event.turn}`, parent, name: `turn ${at.event.turn}` });
    },
    "turn.finished": (view, at) => close(view, at, `turn ${at.event.turn}`),

    "model.started"(view, at) {
      const { turn, model } = at.event;
      const begun = entries.removeTurn(view, at.path, turn);
      return open(begun, at, { place: `model ${turn}`, parent: `turn ${turn}`, name: `model ${model}` });
    },
    "model.reset": (view, { event: { turn }, path }) =>
      spans.annotate(entries.removeTurn(view, path, turn), `${path}model ${turn}`, "started over"),
    "model.finished"(view, at) {
      const { turn, finish, attempts, text } = at.event;
      const outcome = attempts > 1 ? `${finish}, ${attempts} attempts` : finish;
      const ended = close(view, at, `model ${turn}`, outcome);
      if (text === undefined) return ended;
      const removed = entries.removeTurn(ended, at.path, turn, "agent");
      return entries.append(removed, at.path, { who: "agent", turn, key: `${turn}.final` }, text);
    },
    "text.delta": (view, { event: { turn, part, text }, path }) =>
      entries.append(view, path, { who: "agent", turn, key: `${turn}.${part}` }, text),
    "reasoning.delta": (view, { event: { turn, part, text }, path }) =>
      entries.append(view, path, { who: "thought", turn, key: `${turn}.${part}` }, text),

    "call.ready"(view, { event: { turn, call: { id, name, input } }, path }) {
      const call = { name, input: textOfJson(input), status: "ready", text: "" };
      return entries.put(view, { who: "call", turn, key: path + id, ...call });
    },
    "tool.started"(view, at) {
      const { call, turn, name } = at.event;
      const started = entries.change(view, at.path + call, { status: "started" });
      return open(started, at, { place: `call ${call}`, parent: `turn ${turn}`, name, kind: "call" });
    },
    "approval.asked"(view, at) {
      const { call } = at.event;
      const asked = entries.change(view, at.path + call, { status: "asks you" });
      return open(asked, at, { place: `asked ${call}`, parent: `call ${call}`, name: "a person is asked" });
    },
    "approval.decided"(view, { event: { call, decision, by }, path }) {
      const outcome = `${decision === "allow" ? "allowed" : "denied"} by ${by}`;
      return spans.annotate(entries.change(view, path + call, { status: outcome }), `${path}call ${call}`, outcome);
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
      reduce(handlers, view, { event, id, now, path: `${path}${call}/` }),
    "compact.started": (view, at) =>
      open(view, at, { place: "compact", parent: "session", name: `compact (${at.event.trigger})` }),
    "compact.finished": (view, at) => close(view, at, "compact", at.event.status),
    "notice": (view, { event: { text }, id }) => entries.put(view, { who: "note", key: `note ${id}`, text }),
    "warning": (view, { event: { message }, id }) =>
      entries.put(view, { who: "note", key: `note ${id}`, text: `Warning: ${message}` }),
    "steering.injected"(view, { event: { messages }, id }) {
      const text = messages.map(({ parts }) => textOf(parts)).join("\n");
      const delivered = view.entries.filter(({ key }) => !key.startsWith("waits ")); // now they are in the conversation
      return entries.put({ ...view, entries: delivered }, { who: "you", key: `steered ${id}`, text });
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
      const paused = { ...spans.closeAll(view, now), status: "paused", questions, pausedSince: now };
      return resumeToken === undefined ? paused : { ...paused, resumeToken };
    },
    "run.finished"(view, { event: { status, reason }, id, now }) {
      const text = reason === undefined ? status : `${status}: ${reason}`;
      return end(view, id, now, status, status === "done" ? "" : text);
    },
    "run.failed": (view, { event: { message }, id, now }) => end(view, id, now, "failed", message),
    "run.aborted": (view, { event: { reason }, id, now }) => end(view, id, now, "aborted", `Stopped: ${reason}`),
  };

  return (view, { id, event }, now) => {
    if (id <= view.at) return view;
    const arrival = { event, id, now, path: "" };
    return { ...reduce(runHandlers, reduce(handlers, view, arrival), arrival), at: id };
  };

  function reduce(table: Handlers, view: View, arrival: Arrival<Event["type"]>): View {
    const handle = table[arrival.event.type] as ((view: View, arrival: unknown) => View) | undefined; // takes this type
    return handle ? handle(view, arrival) : view;
  }

  /** Returns the place of the call that a subagent works for. */
  function parentCall({ path }: Moment): string {
    return path.replace(/([^/]*)\/$/, "call $1");
  }

  function open(
    view: View,
    { id, now, path }: Moment,
    { place, parent, ...span }: Omit<NewSpan, "key">,
    parentPlace: string = path + parent,
  ): View {
    return spans.open(view, now, { ...span, key: `${id}`, place: path + place, parent: parentPlace });
  }

  function close(view: View, { now, path }: Moment, place: string, outcome?: string): View {
    return spans.close(view, now, path + place, outcome);
  }

  function end(view: View, id: number, now: number, status: string, text: string): View {
    const ended = { ...spans.closeAll(view, now), status, questions: [] };
    return text ? entries.put(ended, { who: "note", key: `end ${id}`, text }) : ended;
  }

  function textOf(
    parts: readonly { readonly type: string; readonly text?: string; readonly mediaType?: string }[],
  ): string {
    return parts.map(({ text, mediaType }) => text ?? `[${mediaType}]`).join("\n");
  }

  function textOfJson(value: unknown): string {
    return typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
  }
}
