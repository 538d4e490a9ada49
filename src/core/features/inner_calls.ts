/**
 * Calls inside subagents, as clients see them: held back as long as the subagent may discard them, and collected for the session behind the filters of the run.
 *
 * @module
 */
import type { OpenCall } from "../call.ts";
import type { Event } from "../../protocol/event.ts";
import type { InnerCall, InnerCalls } from "../../protocol/message.ts";
import type { Question } from "../../protocol/question.ts";

// The calls that clients see: those that start, or wait in a pause. The calls of a response that failed or was retried never do.

type ReadyEvent = Extract<Event, { type: "call.ready" }>;
type ProviderEvent = Extract<Event, { type: `provider_tool.${string}` }>;

/** The response that a subagent receives. */
interface OpenResponse {
  readonly turn: number | undefined;
  /** The calls that have not started, by their ids. */
  readonly ready: Map<string, ReadyEvent>;
  /** The events of calls that the provider runs. */
  readonly provider: ProviderEvent[];
}

/** Holds back the events of calls inside subagents until it is certain that the calls count. */
export class InnerCallGate {
  /** True if clients may have seen calls of which this gate does not know, because the run was resumed. */
  resumed = false;
  readonly #shown: Set<string>;
  /** The open responses, by the path of their subagents. */
  readonly #responses = new Map<string, OpenResponse>();

  /** `shown` are the ids of the calls that clients see. */
  constructor(shown: Iterable<string> = []) {
    this.#shown = new Set(shown);
  }

  /** Returns the events to show now. `path` begins the ids of their calls, such as `call_1/`. The first event of a call is `call.ready`. */
  pass(event: Event, path: string): readonly Event[] {
    switch (event.type) {
      case "model.started":
      case "model.reset":
        this.#responses.set(path, { turn: event.turn, ready: new Map(), provider: [] });
        return [];
      case "call.ready":
        this.#responseOf(path).ready.set(event.call.id, event);
        return [];
      case "provider_tool.started":
      case "provider_tool.finished":
        this.#responseOf(path).provider.push(event);
        return [];
      case "model.finished":
        return this.#responseOf(path).provider.splice(0).filter((each) => this.#isOfProvider(each, path));
      case "tool.started":
        return this.#show(path, event, event.name);
      case "tool.finished":
        return [...this.#show(path, event, event.result.name), event];
      case "tool.progress":
      case "approval.decided":
        return this.#shown.has(path + event.call) ? [event] : [];
      case "subagent.event":
      case "run.paused":
        return [event];
      default:
        return [];
    }
  }

  /** Returns true for a call that the provider runs, and for the result of one that clients see. */
  #isOfProvider(event: ProviderEvent, path: string): boolean {
    const id = path + event.content.callId;
    if (event.type === "provider_tool.started") this.#shown.add(id);
    return this.#shown.has(id);
  }

  #responseOf(path: string): OpenResponse {
    const known = this.#responses.get(path);
    const response = known ?? { turn: undefined, ready: new Map(), provider: [] };
    if (!known) this.#responses.set(path, response);
    return response;
  }

  /** Returns the first events of the calls that have not started, since the subagent has paused: clients see them from now on. */
  release(path: string): readonly ReadyEvent[] {
    const { ready } = this.#responseOf(path);
    const events = [...ready.values()];
    for (const id of ready.keys()) this.#shown.add(path + id);
    ready.clear();
    return events;
  }

  /** Returns the first event of a call that clients do not see yet. A hook may have made the call, without an event of the model. */
  #show(path: string, { call: id, turn }: { readonly call: string; readonly turn: number }, name: string): Event[] {
    const { ready, turn: openTurn } = this.#responseOf(path);
    const event = ready.get(id);
    ready.delete(id);
    const isKnown = this.#shown.has(path + id) || (this.resumed && openTurn !== turn);
    this.#shown.add(path + id);
    if (event) return [event];
    return isKnown ? [] : [{ type: "call.ready", turn, call: { id, name, input: {} } }];
  }
}

/** Returns the texts of the last question of a pause, which clients see in place of the results of calls that wait for it. */
export function lastTexts(questions: readonly Question[]): readonly string[] {
  return questions.at(-1)?.questions ?? [];
}

// The calls that the session keeps.

/** The number of characters that the calls inside one subagent's call may have as JSON. Beyond, the oldest are left out. */
const maxCharacters = 100_000;

/** A pause of the outermost run. */
interface LastPause {
  readonly run: string;
  /** The number of its `run.paused` event. */
  readonly pausedAt: number;
}

/** Collects the calls inside the call of a subagent. */
class InnerCallCollector {
  readonly #calls: Map<string, InnerCall>;
  readonly #omitted: number;
  readonly #pause: LastPause;
  readonly #gate: InnerCallGate;

  /** Continues with the calls that clients have seen, after a pause if the run was resumed. */
  constructor({ calls, omitted = 0 }: InnerCalls = { calls: [] }, pause: LastPause) {
    this.#calls = new Map(calls.map((call) => [call.id, call]));
    this.#omitted = omitted;
    this.#pause = pause;
    this.#gate = new InnerCallGate(this.#calls.keys());
  }

  /** Returns the calls so far; the oldest are left out if all are too large, except those whose results may follow after a pause. */
  get calls(): InnerCalls | undefined {
    if (this.#calls.size === 0) return undefined;
    let size = 0;
    const kept = [...this.#calls.values()].reverse().filter((call) => {
      size += JSON.stringify(call).length;
      return size <= maxCharacters || (!call.status && !call.provider);
    });
    const omitted = this.#omitted + this.#calls.size - kept.length;
    return { calls: kept.reverse(), ...(omitted > 0 && { omitted }) };
  }

  /** Adds an event of a subagent. `path` begins the ids of its calls, and `at` is its number in the outermost run. */
  add(event: Event, path: string, at: number): void {
    for (const each of this.#gate.pass(event, path)) this.#show(each, path, at);
  }

  #show(event: Event, path: string, at: number): void {
    switch (event.type) {
      case "subagent.event":
        return this.add(event.event, `${path}${event.call}/`, at);
      case "call.ready": {
        const { id, name, input } = event.call;
        return this.#set({ id: path + id, name, input, at });
      }
      case "provider_tool.started": {
        const { callId, name, input } = event.content;
        return this.#set({ id: path + callId, name, input, at, provider: true });
      }
      case "provider_tool.finished": {
        const { callId, status, output } = event.content;
        return this.#change(path + callId, { status, output });
      }
      case "run.paused":
        for (const { call } of this.#gate.release(path)) {
          const { id, name, input } = call;
          this.#set({ id: path + id, name, input, at, questions: lastTexts(event.questions), pending: true });
        }
        for (const { callId = "", tool: name, input, questions } of event.questions) {
          if (name !== undefined) this.#set({ id: path + callId, name, input, at, questions });
        }
        return;
      case "approval.decided": {
        const { call, by, decision, reason } = event;
        const answer = { ...this.#pause, approved: decision === "allow", ...(reason !== undefined && { reason }) };
        return by === "person" ? this.#change(path + call, { answer }) : undefined;
      }
      case "tool.finished": {
        const { call, result: { status, parts } } = event;
        return this.#change(path + call, { status, parts });
      }
    }
  }

  /** Sets a call. One that clients see stays at its place. */
  #set(call: InnerCall): void {
    const { at } = this.#calls.get(call.id) ?? call;
    this.#calls.set(call.id, { ...call, at });
  }

  #change(id: string, change: Partial<InnerCall>): void {
    const call = this.#calls.get(id);
    if (call) this.#calls.set(id, { ...call, ...change });
  }
}

/**
 * Runs the work of a subagent's call, and collects the calls inside it behind the filters of the outermost run: what its clients do not receive is not kept. The
 * call of a nested subagent collects nothing, since its calls are among those of the outermost one.
 */
export async function collectInnerCalls<R>(call: OpenCall, work: () => Promise<R>): Promise<R> {
  const { record: { call: { id } }, scope: { engine: { parent, events, id: run, claimed: { snapshot } } } } = call;
  if (parent) return await work();
  const collector = new InnerCallCollector(call.inner, { run, pausedAt: snapshot.events });
  const observe = (event: Event) => {
    if (event.type === "subagent.event" && event.call === id) collector.add(event.event, `${id}/`, events.count + 1);
  };
  events.observers = [...events.observers, observe];
  call.collect(collector);
  try {
    return await work();
  } finally {
    events.observers = events.observers.filter((each) => each !== observe);
  }
}
