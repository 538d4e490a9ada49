/**
 * Masks the events of a run.
 *
 * @module
 */
import type { Emit, Event } from "../../../mod.ts";
import type { DeltaEvent } from "../../../src/core/engine.ts";
import { maskEvent } from "./events.ts";
import type { Mask } from "./mask.ts";
import { StreamedResponse } from "./response.ts";

/** The events that begin or end a response, a turn or a run. Deltas that are held back are released before them. */
const boundaries: ReadonlySet<Event["type"]> = new Set<Event["type"]>([
  "turn.started",
  "model.started",
  "model.finished",
  "turn.finished",
  "session.closed",
  "run.finished",
  "run.paused",
  "run.failed",
  "run.aborted",
]);

/**
 * Masks the events of one run, and of the agents below it. Deltas that its `model` hook has not released come from tools and other hooks: they are masked
 * too.
 */
export class RunEvents {
  readonly #mask: Mask;
  readonly #emit: Emit;
  readonly #released: WeakSet<Event>;
  /** The deltas that the `model` hook has not released. */
  readonly #others: StreamedResponse;
  /** The turn of the last delta. */
  #turn = 0;
  /** The events of the agents below, by the call that they work for. */
  readonly #children = new Map<string, RunEvents>();

  /** Creates a run without events, whose masked events go to `emit`. `released` contains the deltas that are masked already. */
  constructor(mask: Mask, emit: Emit, released: WeakSet<Event>) {
    this.#mask = mask;
    this.#emit = emit;
    this.#released = released;
    this.#others = new StreamedResponse(mask, emit, released);
  }

  /** Handles the next event. */
  pass(event: Event): void {
    switch (event.type) {
      case "text.delta":
      case "reasoning.delta":
      case "call.delta":
        return this.#passDelta(event);
      case "call.ready":
      case "model.reset":
        return this.#others.pass(event);
      case "subagent.event":
        return this.#childOf(event).pass(event.event);
      case "subagent.finished":
        this.#children.get(event.call)?.end();
        this.#children.delete(event.call);
        return this.#emit(maskEvent(event, this.#mask));
      default:
        if (boundaries.has(event.type)) this.#others.end();
        return this.#emit(maskEvent(event, this.#mask));
    }
  }

  /** Releases everything that is held back: the run is over. */
  end(): void {
    this.#others.end();
    for (const child of this.#children.values()) child.end();
  }

  #passDelta(event: DeltaEvent): void {
    if (event.turn !== this.#turn) this.#others.end();
    this.#turn = event.turn;
    return this.#released.has(event) && !this.#others.holds(event) ? this.#emit(event) : this.#others.pass(event);
  }

  #childOf({ call, agent }: Extract<Event, { readonly type: "subagent.event" }>): RunEvents {
    const emit: Emit = (event) => this.#emit({ type: "subagent.event", call, agent, event });
    const child = this.#children.get(call) ?? new RunEvents(this.#mask, emit, this.#released);
    this.#children.set(call, child);
    return child;
  }
}
