/**
 * The run as an onion in time, as it is drawn: a row for each span, beneath what it lies in, and a bar from when to when.
 *
 * @module
 */
import type { Element } from "./dom.ts";
import type { Elements } from "./elements.ts";
import type { Span } from "./view.ts";

/** Draws the run until `now`, in milliseconds since it began. Runs in the page: it reaches for nothing outside of itself. */
export function drawOnion({ make, write, list }: Elements, root: Element, spans: readonly Span[], now: number): void {
  const end = Math.max(1, ...spans.map(({ to = now }) => to));
  const beneath = Map.groupBy(spans, ({ under }) => under);
  list(root, rows("", 0), begin, update);

  /** What lies beneath a span, each followed by what lies beneath that: what is around it from the outside in, then what happened in it. */
  function rows(under: string, depth: number): (Span & { readonly depth: number })[] {
    const here = beneath.get(under) ?? [];
    const hooks = here.filter(({ around }) => around)
      .sort((a, b) => orderOf(a) - orderOf(b) || a.from - b.from || Number(b.key) - Number(a.key));
    const inside = here.filter(({ around }) => !around);
    return [...hooks, ...inside].flatMap((span) => [{ ...span, depth }, ...rows(span.key, depth + 1)]);
  }

  /** The points of a call come one after another. */
  function orderOf({ point = "" }: Span): number {
    return ["tool", "approval", "execute"].indexOf(point);
  }

  function begin({ kind }: Span): Element {
    const bar = make("span", "bar");
    const track = make("span", "track", bar);
    track.setAttribute("aria-hidden", "true");
    return make("li", `span ${kind}`, make("span", "name"), make("span", "did"), make("span", "ms"), track);
  }

  function update(row: Element, { name, did, from, to, depth }: Span & { readonly depth: number }): void {
    const [named, done, took, track] = row.children;
    const bar = track?.children[0];
    write(named, name);
    write(done, did);
    write(took, to === undefined ? "…" : `${(to - from).toFixed(to - from < 10 ? 1 : 0)} ms`);
    row.style.setProperty("--depth", String(depth));
    bar?.style.setProperty("--from", String(from / end));
    bar?.style.setProperty("--long", String(((to ?? end) - from) / end));
  }
}
