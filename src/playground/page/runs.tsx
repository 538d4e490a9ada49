/**
 * The runs of the conversation, and the trace of one of them.
 *
 * @module
 */
import { memo, useEffect, useLayoutEffect, useRef, useState } from "hono/jsx/dom";
import type { BenchCall } from "./bench.tsx";
import type { Conversation } from "./conversation.ts";
import { Detail } from "./detail.tsx";
import { differenceOf } from "./difference.ts";
import { SideQuestion } from "./question.tsx";
import type { SideRunsByKey } from "./side_runs.ts";
import { type TraceNode, traceTree, unchangedNodes } from "./trace_tree.ts";
import {
  actsOf,
  isRunning,
  legend,
  type Prices,
  recordOf,
  type RunRecord,
  type Span,
  spendingOf,
  type Summary,
  summaryOf,
  symbolOf,
  timeOf,
  type View,
  wordsOf,
} from "./view.ts";

// The trace of a run: nested brackets, each with its acts in plain words and its time.

/** The properties of the trace. */
interface TraceProps {
  readonly spans: readonly Span[];
  /** Whether the run is running, so that the end of the trace is shown. */
  readonly isRunning: boolean;
  /** Opens the details of a span. */
  readonly open: (key: string) => void;
}

/** The trace, with its legend. If it was scrolled to its end, it stays there. */
export const Trace = memo(({ spans, isRunning, open }: TraceProps) => {
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
        {drawn.current.map((node) => <Bracket key={node.key} node={node} open={open} />)}
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

/** The properties of a bracket. */
interface BracketProps {
  readonly node: TraceNode;
  /** Opens the details of a span. */
  readonly open: (key: string) => void;
}

/** A bracket around what is inside a span. */
const Bracket = memo(({ node: { span, children }, open }: BracketProps) => {
  const inner = children.length > 0 && (
    <ol>{children.map((node) => <Bracket key={node.key} node={node} open={open} />)}</ol>
  );
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
        {span.kind === "hook" || span.subject !== undefined
          ? (
            <button
              type="button"
              class="name"
              data-span={span.key}
              title={`Details of ${span.name}`}
              onClick={() => open(span.key)}
            >
              <Name span={span} />
            </button>
          )
          : <span class="name" title={span.name}>{span.name}</span>}
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

// The list of runs.

/** The properties of the list of runs. */
interface RunsProps {
  readonly view: View;
  readonly prices: Prices;
  readonly now: number;
  readonly beside: SideRunsByKey;
  readonly conversation: Conversation;
  /** Puts a call on the bench. Undefined if there is none. */
  readonly runAlone: ((call: BenchCall) => void) | undefined;
}

/** The list of runs, and the trace of the selected one. A new run is selected when it begins. */
export function Runs({ view, prices, now, beside, conversation, runAlone }: RunsProps) {
  const { again: runAgain, answerBeside } = conversation;
  const [selected, select] = useState("");
  const [opened, open] = useState("");
  useEffect(() => {
    select("");
    open("");
  }, [view.run]);
  const current = view.run === undefined ? [] : [recordOf(view, now)];
  const runs = [...view.past, ...current];
  const shown = runs.find(({ run }) => run === selected) ?? runs.at(-1);
  const span = shown?.spans.find(({ key }) => key === opened);
  const spending = shown && spendingOf(view.turns.filter(({ run }) => run === shown.run), prices);
  const repeated = shown && beside[shown.run];
  const repeatable = runs.filter((run) => run.prompt !== "" && !isRunning(run));
  if (!shown) {
    return (
      <p class="nothing">
        The trace of each run appears here: every point with its time, and with <code>agent({"{ trace }"})</code>{" "}
        also what each middleware did.
      </p>
    );
  }
  return (
    <>
      <ol id="runs" aria-label="Runs of this session">
        {runs.map((record, index) => (
          <li key={record.run}>
            <Choice record={record} number={index + 1} isShown={record === shown} select={select} />
          </li>
        ))}
      </ol>
      <p id="totals">
        {[`${timeOf(shown.ms)}`, ...(spending ? [wordsOf(spending)] : [])].join(" · ")}
        <span class="code id" title="The id of the run">{shown.run.slice(0, 8)}</span>
      </p>
      {!isRunning(shown) && shown.prompt !== "" && (
        <div class="again" title="In a session of its own, with the code of now. The tools run again, too.">
          <button
            type="button"
            onClick={() =>
              runAgain([shown])}
          >
            Run again and compare
          </button>
          {repeatable.length > 1 && (
            <button
              type="button"
              onClick={() => runAgain(repeatable)}
            >
              All {repeatable.length} runs again
            </button>
          )}
        </div>
      )}
      {repeated && (
        <Comparison
          before={summaryOf(view, shown, prices)}
          after={summaryOf(repeated.view, recordOf(repeated.view, now), prices)}
        />
      )}
      {repeated?.view.entries.flatMap(({ kind, key, text }) =>
        kind === "note" ? [<p key={key} class="problem">{text}</p>] : []
      )}
      {repeated && <SideQuestion run={repeated} answer={(answer) => answerBeside(shown.run, answer)} />}
      <Trace
        key={shown.run}
        spans={shown.spans}
        isRunning={shown.run === view.run && view.status === "running"}
        open={open}
      />
      {span && <Detail span={span} view={view} close={() => open("")} runAlone={runAlone} />}
    </>
  );
}

/** The properties of a comparison. */
interface ComparisonProps {
  readonly before: Summary;
  readonly after: Summary;
}

/** A table of two runs of a prompt: what is the same, and what differs. */
function Comparison({ before, after }: ComparisonProps) {
  return (
    <table id="comparison" aria-label="Comparison">
      <tr>
        <th />
        <th>Then</th>
        <th>Now</th>
      </tr>
      {(["status", "calls", "answer", "tokens", "time"] as const).map((key) => {
        const [then, now] = [before[key], after[key]];
        const isText = key === "calls" || key === "answer";
        return (
          <tr key={key} class={then === now || key === "time" ? "same" : "differs"}>
            <th>{key}</th>
            <td>{then}</td>
            <td>{then === now ? "the same" : isText ? <Difference before={then} after={now} /> : now}</td>
          </tr>
        );
      })}
    </table>
  );
}

/** The second of two texts, with what is new in it underlined. What is gone is beside it, in the first one. */
function Difference({ before, after }: { readonly before: string; readonly after: string }) {
  const pieces = differenceOf(before, after).filter(({ kind }) => kind !== "removed");
  if (pieces.every(({ kind }) => kind === "added")) return <>{after}</>; // nothing is the same
  return <>{pieces.map(({ kind, text }, index) => kind === "added" ? <ins key={index}>{text}</ins> : text)}</>;
}

/** The properties of one run in the list. */
interface ChoiceProps {
  readonly record: RunRecord;
  readonly number: number;
  readonly isShown: boolean;
  readonly select: (run: string) => void;
}

function Choice({ record: { run, prompt, status, ms }, number, isShown, select }: ChoiceProps) {
  return (
    <button type="button" aria-current={isShown ? "true" : "false"} onClick={() => select(run)}>
      <span class="number">{number}</span>
      <span class="prompt">{prompt}</span>
      <span class={`status ${status}`}>{status}</span>
      <span class="ms">{timeOf(ms)}</span>
    </button>
  );
}
