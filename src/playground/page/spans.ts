/**
 * Changes of the spans in a view. `now` is in milliseconds since 1970.
 *
 * @module
 */
import type { Span, View } from "./view.ts";
import type { Event } from "../../protocol/event.ts";

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
  /** The batch of a call. */
  readonly batch?: string;
  readonly subject?: string;
}

/** Returns the milliseconds from the start of the run to an event, without the pauses before it. */
function offset({ began, waited }: View, now: number): number {
  return Math.max(0, now - began - waited);
}

/** Returns whether a place has an open span. */
export function isOpen({ spans }: View, place: string): boolean {
  return spans.some((span) => span.place === place && span.to === undefined);
}

/** Opens a span. */
export function openSpan(
  view: View,
  now: number,
  { key, place, parent, name, kind = "point", batch, subject }: NewSpan,
): View {
  const group = batch === undefined ? undefined : groupOf(view, key, batch);
  const span: Span = {
    key,
    place,
    parent: parent && view.spans.findLast((each) => each.place === parent)?.key || "",
    isWrapper: false,
    kind,
    name,
    from: offset(view, now),
    outcome: "",
    ...(group !== undefined && { group }),
    ...(subject !== undefined && { subject }),
  };
  return { ...view, spans: [...view.spans, span] };
}

/** Returns the group of a new call: that of the calls of its batch that are still open, or else a new group. */
function groupOf({ spans }: View, key: string, batch: string): string {
  const prefix = `${batch} `;
  const running = spans.findLast(({ group, to }) => group?.startsWith(prefix) && to === undefined);
  return running?.group ?? prefix + key;
}

/** Sets the outcome of the open span at a place. */
export function annotate(view: View, place: string, outcome: string, fields: Pick<Span, "verdict"> = {}): View {
  const index = view.spans.findLastIndex((span) => span.place === place && span.to === undefined);
  const span = view.spans[index];
  return span ? { ...view, spans: view.spans.with(index, { ...span, outcome, ...fields }) } : view;
}

/** Sets the outcome of the run's last session, which may have closed. */
export function annotateSession(view: View, outcome: string): View {
  const index = view.spans.findLastIndex((span) => span.place === "session");
  const span = view.spans[index];
  return span ? { ...view, spans: view.spans.with(index, { ...span, outcome }) } : view;
}

/** Closes the open spans at a place. */
export function close(view: View, now: number, place: string, outcome?: string): View {
  const to = offset(view, now);
  const { spans } = outcome === undefined ? view : annotate(view, place, outcome);
  const closed = (span: Span) => span.place === place && span.to === undefined ? { ...span, to } : span;
  return { ...view, spans: spans.map(closed) };
}

/** Closes all open spans. */
export function closeAll(view: View, now: number): View {
  const to = offset(view, now);
  return { ...view, spans: view.spans.map((span) => span.to === undefined ? { ...span, to } : span) };
}

/** Adds the span of a hook. `path` names the subagent whose hook it is. */
export function addHook(view: View, now: number, key: string, path: string, event: HookEvent): View {
  const { middleware, point, ms } = event;
  const find = (place: string) => view.spans.findLast((span) => span.place === path + place);
  const placed = find(placeOf(event));
  const parent = (placed ?? find("prompt") ?? find("session"))?.key ?? "";
  const to = offset(view, now);
  const began = Math.max(0, to - ms);
  // hooks finish from the inside out, so those that finished after this one began are inside it
  const inner = view.spans.filter((span) =>
    span.parent === parent && span.point === point && span.to !== undefined && span.to > began
  );
  const span: Span = {
    key,
    place: "",
    parent,
    isWrapper: placed !== undefined,
    kind: "hook",
    point,
    name: `${middleware} at ${point}`,
    from: Math.min(began, ...inner.map(({ from }) => from)),
    to,
    outcome: outcomeOf(event),
    acts: event.did,
    ...(event.changed && { changed: event.changed }),
    ...(event.changes && { changes: event.changes }),
    ...(event.decided !== undefined && { decided: event.decided }),
  };
  return { ...view, spans: [...widened(view.spans, span), span] };
}

/** Names the reason why hooks threw: a pause and a stop pass through the hooks as exceptions. */
export function explainThrown(view: View, reason: "paused" | "stopped"): View {
  const explained = (span: Span): Span => {
    if (!span.acts?.includes("threw")) return span;
    return { ...span, acts: span.acts.map((act) => act === "threw" ? reason : act) };
  };
  return { ...view, spans: view.spans.map(explained) };
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
