/**
 * The trace of a run: nested brackets, each with its acts in plain words and its time.
 *
 * @module
 */
import { memo, useLayoutEffect, useRef, useState } from "hono/jsx/dom";
import { type TraceNode, traceTree, unchangedNodes } from "../state/trace_tree.ts";
import { timeOf } from "../state/usage.ts";
import type { Span } from "../state/view.ts";
import { actsOf, legend, symbolOf } from "../state/words.ts";

/** The properties of the trace. */
interface TraceProps {
  readonly spans: readonly Span[];
  /** Whether the run is running, so that the end of the trace is shown. */
  readonly isRunning: boolean;
}

/** The trace, with its legend. If it was scrolled to its end, it stays there. */
export const Trace = memo(({ spans, isRunning }: TraceProps) => {
  const list = useRef<HTMLOListElement>(null);
  const wasAtEnd = useRef(isRunning);
  const drawn = useRef<readonly TraceNode[]>([]);
  const [isBrief, setBrief] = useState(false);
  useLayoutEffect(() => {
    if (list.current && wasAtEnd.current) list.current.scrollTop = list.current.scrollHeight;
  }, [spans]);
  const whole = traceTree(spans);
  drawn.current = unchangedNodes(isBrief ? whole.flatMap(withoutPassed) : whole, drawn.current);
  const start = spans.reduce((earliest, { from }) => Math.min(earliest, from), Infinity);
  const end = spans.reduce((latest, { from, to = from }) => Math.max(latest, to), start + 1);
  return (
    <>
      {spans.length > 0 && (
        <div class="legend">
          <details open={matchMedia("(min-width: 801px)").matches}>
            <summary>Legend</summary>
            <ul aria-label="Legend">
              {legend.map(({ kind, symbol, meaning }) => (
                <li key={kind}>
                  <span class={`act ${kind}`}>
                    <span aria-hidden="true">{symbol}</span> {kind}:
                  </span>{" "}
                  <span class="meaning">{meaning}</span>
                </li>
              ))}
            </ul>
          </details>
          <label>
            <input type="checkbox" onChange={() => setBrief(!isBrief)} /> Hide hooks that passed
          </label>
        </div>
      )}
      <ol
        id="onion"
        ref={list}
        aria-label="Trace"
        tabindex={0}
        style={`--start: ${start}; --end: ${end}`}
        onScroll={({ currentTarget }: Event) => {
          const { scrollHeight, scrollTop, clientHeight } = currentTarget as HTMLElement; // the list
          wasAtEnd.current = scrollHeight - scrollTop - clientHeight < 40;
        }}
      >
        {drawn.current.map((node) => <Bracket key={node.key} node={node} />)}
      </ol>
    </>
  );
});

/** Replaces the hooks that only passed by what is inside them. */
function withoutPassed(node: TraceNode): readonly TraceNode[] {
  const children = node.children.flatMap(withoutPassed);
  const isPassed = node.span?.kind === "hook" && node.span.acts?.every((act) => act === "passed");
  return isPassed ? children : [{ ...node, children }];
}

/** A bracket around what is inside a span. */
const Bracket = memo(({ node: { span, children } }: { readonly node: TraceNode }) => {
  const inner = children.length > 0 && <ol>{children.map((node) => <Bracket key={node.key} node={node} />)}</ol>;
  if (!span) {
    return (
      <li class="span group">
        <div class="row">
          <span class="name">{`${children.length} calls at the same time`}</span>
        </div>
        {inner}
      </li>
    );
  }
  const acts = actsOf(span);
  const [strongest = { kind: "" }] = acts;
  return (
    <li class={`span ${span.kind} ${strongest.kind}${span.to === undefined ? " open" : ""}`}>
      <div class="row">
        <span class="name" title={span.name}>
          <Name span={span} />
        </span>
        <span class="did">
          {acts.map(({ kind, text }) => (
            <span key={text} class={`act ${kind}`}>
              <span aria-hidden="true">{symbolOf(kind)}</span> {text}
            </span>
          ))}
          {span.kind !== "hook" && outcomeOf(span)}
        </span>
        <span class="track" aria-hidden="true">
          <span class="bar" style={`--from: ${span.from}; --to: ${span.to ?? "var(--end)"}`} />
        </span>
        <span class="ms">{span.to === undefined ? "…" : timeOf(span.to - span.from)}</span>
      </div>
      {inner}
    </li>
  );
});

/** Returns the outcome of a point or a call, and who decided about the call. */
function outcomeOf({ outcome, verdict }: Span): string {
  if (verdict === undefined) return outcome;
  return outcome === "" || verdict.startsWith(outcome) ? verdict : `${outcome} · ${verdict}`;
}

/** The name of a span. That of a hook ends in its point. */
function Name({ span: { name, point } }: { readonly span: Span }) {
  const suffix = ` at ${point}`;
  if (point === undefined || !name.endsWith(suffix)) return <>{name}</>;
  return (
    <>
      {name.slice(0, -suffix.length)}
      <span class="point">{suffix}</span>
    </>
  );
}
