/**
 * The run on the page, as an onion over time: one row for each span below the span that contains it, with a bar for its time.
 *
 * @module
 */
import type { Element } from "./dom.ts";
import type { Elements } from "./elements.ts";
import type { Span } from "./view.ts";

/** Draws the run until `now`, in milliseconds since it began. Runs in the page, so it uses nothing outside itself. */
export function drawRun({ make, write, list }: Elements, root: Element, spans: readonly Span[], now: number): void {
  const end = Math.max(1, ...spans.map(({ to = now }) => to));
  const byParent = Map.groupBy(spans, ({ parent }) => parent);
  list(root, rowsOf("", 0), create, update);

  /** Returns the spans inside a span, each followed by the spans inside it: first the wrappers from the outside in, then the others in time. */
  function rowsOf(parent: string, depth: number): (Span & { readonly depth: number })[] {
    const children = byParent.get(parent) ?? [];
    const wrappers = children.filter(({ isWrapper }) => isWrapper)
      .sort((a, b) => pointOrder(a) - pointOrder(b) || a.from - b.from || Number(b.key) - Number(a.key));
    const inner = children.filter(({ isWrapper }) => !isWrapper);
    return [...wrappers, ...inner].flatMap((span) => [{ ...span, depth }, ...rowsOf(span.key, depth + 1)]);
  }

  /** The points of a call follow one another. */
  function pointOrder({ point = "" }: Span): number {
    return ["tool", "approval", "execute"].indexOf(point);
  }

  function create({ kind }: Span): Element {
    const bar = make("span", "bar");
    const track = make("span", "track", bar);
    track.setAttribute("aria-hidden", "true");
    return make("li", `span ${kind}`, make("span", "name"), make("span", "did"), make("span", "ms"), track);
  }

  function update(row: Element, { name, outcome, from, to, depth }: Span & { readonly depth: number }): void {
    const [nameCell, outcomeCell, timeCell, track] = row.children;
    const bar = track?.children[0];
    write(nameCell, name);
    write(outcomeCell, outcome);
    write(timeCell, to === undefined ? "…" : `${(to - from).toFixed(to - from < 10 ? 1 : 0)} ms`);
    row.style.setProperty("--depth", String(depth));
    bar?.style.setProperty("--from", String(from / end));
    bar?.style.setProperty("--long", String(((to ?? end) - from) / end));
  }
}
