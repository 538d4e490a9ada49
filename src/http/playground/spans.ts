/**
 * Changes of the spans in a view.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { Span, View } from "./view.ts";

/** A hook that has finished. */
export type HookEvent = Extract<Event, { readonly type: "hook.acted" }>;

/** A span to open. */
export interface NewSpan {
  readonly key: string;
  readonly place: string;
  /** The place of the span that contains it; empty for none. */
  readonly parent: string;
  readonly name: string;
  readonly kind?: Span["kind"];
}

/** Functions that return a view with changed spans. `now` is in milliseconds since 1970. */
export interface SpanUpdates {
  /** Whether a place has an open span. */
  isOpen(view: View, place: string): boolean;
  /** Opens a span. */
  open(view: View, now: number, span: NewSpan): View;
  /** Sets the outcome of the open span at a place. */
  annotate(view: View, place: string, outcome: string): View;
  /** Closes the open spans at a place. */
  close(view: View, now: number, place: string, outcome?: string): View;
  /** Closes all open spans. */
  closeAll(view: View, now: number): View;
  /** Adds the span of a hook. `path` names the subagent whose hook it is. */
  addHook(view: View, now: number, key: string, path: string, event: HookEvent): View;
}

/** Creates the functions. Runs in the page, so it uses nothing outside itself. */
export function spanUpdates(): SpanUpdates {
  return { isOpen, open, annotate, close, closeAll, addHook };

  /** Returns the milliseconds since the run began, without its pauses. */
  function elapsed({ began, waited }: View, now: number): number {
    return Math.max(0, now - began - waited);
  }

  function isOpen({ spans }: View, place: string): boolean {
    return spans.some((span) => span.place === place && span.to === undefined);
  }

  function open(view: View, now: number, { key, place, parent, name, kind = "point" }: NewSpan): View {
    const span: Span = {
      key,
      place,
      parent: parent && view.spans.findLast((each) => each.place === parent)?.key || "",
      isWrapper: false,
      kind,
      name,
      from: elapsed(view, now),
      outcome: "",
    };
    return { ...view, spans: [...view.spans, span] };
  }

  function annotate(view: View, place: string, outcome: string): View {
    const index = view.spans.findLastIndex((span) => span.place === place && span.to === undefined);
    const span = view.spans[index];
    return span ? { ...view, spans: view.spans.with(index, { ...span, outcome }) } : view;
  }

  function close(view: View, now: number, place: string, outcome?: string): View {
    const to = elapsed(view, now);
    const { spans } = outcome === undefined ? view : annotate(view, place, outcome);
    const closed = (span: Span) => span.place === place && span.to === undefined ? { ...span, to } : span;
    return { ...view, spans: spans.map(closed) };
  }

  function closeAll(view: View, now: number): View {
    const to = elapsed(view, now);
    return { ...view, spans: view.spans.map((span) => span.to === undefined ? { ...span, to } : span) };
  }

  function addHook(view: View, now: number, key: string, path: string, event: HookEvent): View {
    const { middleware, point, ms } = event;
    const find = (place: string) => view.spans.findLast((span) => span.place === path + place);
    const own = find(placeOf(event));
    const parent = (own ?? find("prompt") ?? find("session"))?.key ?? "";
    const to = elapsed(view, now);
    const began = Math.max(0, to - ms);
    // hooks finish from the inside out, so those that finished after this one began are inside it
    const inner = view.spans.filter((span) =>
      span.parent === parent && span.point === point && span.to !== undefined && span.to > began
    );
    const span: Span = {
      key,
      place: "",
      parent,
      isWrapper: own !== undefined,
      kind: "hook",
      point,
      name: `${middleware} at ${point}`,
      from: Math.min(began, ...inner.map(({ from }) => from)),
      to,
      outcome: outcomeOf(event),
    };
    return { ...view, spans: [...widened(view.spans, span), span] };
  }

  /** Returns the place of the span that a hook wraps. */
  function placeOf({ point, turn, call }: HookEvent): string {
    if (call) return `call ${call}`;
    if (turn) return `${point === "model" ? "model" : "turn"} ${turn}`;
    return point;
  }

  function outcomeOf({ did, changed, decided }: HookEvent): string {
    const acts = did.map((act) => act === "changed" && changed ? `changed ${changed.join(", ")}` : act).join(", ");
    return decided === undefined ? acts : `${acts}: ${decided}`;
  }

  /** Widens the spans that contain `inner`. A point's span opens after its hooks began, and its hooks are reported after it closed. */
  function widened(spans: readonly Span[], { parent, from, to = from }: Span): readonly Span[] {
    const index = spans.findIndex(({ key }) => key === parent);
    const span = spans[index];
    if (!span) return spans;
    const end = span.to === undefined ? {} : { to: Math.max(span.to, to) };
    const wider = { ...span, from: Math.min(span.from, from), ...end };
    return widened(spans.with(index, wider), wider);
  }
}
