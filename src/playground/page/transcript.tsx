/**
 * The transcript: the entries of the conversation.
 *
 * @module
 */
import { memo, useEffect, useLayoutEffect, useMemo, useRef } from "hono/jsx/dom";
import { Markdown } from "./markdown.tsx";
import type { PageData } from "../page_data.ts";
import {
  type Entry,
  type Failure,
  type Prices,
  type Spending,
  spendingOf,
  turnKeyOf,
  type View,
  wordsOf,
} from "./view.ts";

// A call in the transcript.

const maxArguments = 160;

/** A call: one line with its arguments and its status, which opens to its whole input and result. */
function CallCard({ entry: { name, input = "", text, status = "", verdict } }: { readonly entry: Entry }) {
  const words = verdict === undefined || verdict.startsWith(status) ? verdict ?? status : `${status} · ${verdict}`;
  return (
    <details class="call">
      <summary>
        <span class="tool">{name}</span>
        <span class="arguments">{argumentsOf(input)}</span>
        <span class={`status ${kindOf(status)}`}>{words}</span>
      </summary>
      <div class="label">Input</div>
      <pre class="input" tabindex={0}>{input}</pre>
      <div class="label" hidden={text === ""}>Result</div>
      <pre class="result" tabindex={0} hidden={text === ""}>{text}</pre>
    </details>
  );
}

/** Returns the arguments in one line, such as `city: "Rome", days: 3`. */
function argumentsOf(input: string): string {
  const line = input.replace(/\s+/g, " ");
  try {
    const value: unknown = JSON.parse(input);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return shortened(line);
    return shortened(Object.entries(value).map(([key, each]) => `${key}: ${JSON.stringify(each)}`).join(", "));
  } catch (error) {
    if (error instanceof SyntaxError) return shortened(line);
    throw error;
  }
}

function shortened(line: string): string {
  return line.length > maxArguments ? `${line.slice(0, maxArguments)}…` : line;
}

function kindOf(status: string): string {
  if (status === "ok") return "ok";
  if (status === "error" || status === "timeout" || status === "denied") return "bad";
  return status === "asks you" ? "asks" : "";
}

// The entries of the transcript.

const authors = { you: "You", agent: "Agent", thought: "Thought", note: "Note", call: "Call" };

/** The properties of the transcript. */
interface TranscriptProps {
  readonly view: View;
  readonly prices: Prices;
  /** The proposed prompts: below one that was sent, the transcript says what to look for. */
  readonly prompts: PageData["prompts"];
}

/** The transcript. If it was scrolled to its end, it stays there. */
export function Transcript({ view, prices, prompts }: TranscriptProps) {
  const list = useRef<HTMLOListElement>(null);
  const wasAtEnd = useRef(true);
  const scroll = () => {
    if (list.current && wasAtEnd.current) list.current.scrollTop = list.current.scrollHeight;
  };
  useLayoutEffect(scroll, [view.entries]);
  useEffect(() => {
    const observer = new ResizeObserver(scroll); // a question above the text field makes the transcript smaller
    if (list.current) observer.observe(list.current);
    return () => observer.disconnect();
  }, []);
  const footers = useMemo(() => footersOf(view, prices), [view.entries, view.turns]);
  return (
    <ol
      id="log"
      ref={list}
      role="log"
      aria-label="Transcript"
      aria-busy={view.status === "running" ? "true" : "false"}
      tabindex={0}
      onScroll={({ currentTarget }: Event) => {
        const { scrollHeight, scrollTop, clientHeight } = currentTarget as HTMLElement; // the list
        wasAtEnd.current = scrollHeight - scrollTop - clientHeight < 40;
      }}
    >
      {view.entries.map((entry) => (
        <Row key={entry.key} entry={entry} footer={footers.get(entry.key) ?? ""} look={lookFor(entry)} />
      ))}
    </ol>
  );

  /** Returns what to look for in the run of a proposed prompt. */
  function lookFor({ kind, text }: Entry): string {
    return kind === "you" ? prompts.find((prompt) => prompt.text === text)?.note ?? "" : "";
  }
}

/** Returns the words about tokens and cost below the last entry of each turn. */
function footersOf({ entries, turns }: View, prices: Prices): ReadonlyMap<string, string> {
  const lastEntries = new Map(entries.map((entry) => [turnKeyOf(entry), entry.key]));
  const footers = new Map<string, string>();
  for (const turn of turns) {
    const entry = lastEntries.get(turn.key);
    const spending: Spending | undefined = spendingOf([turn], prices);
    if (entry !== undefined && spending) footers.set(entry, `Turn ${turn.turn} · ${wordsOf(spending)}`);
  }
  return footers;
}

/** The properties of one entry. */
interface RowProps {
  readonly entry: Entry;
  readonly footer: string;
  readonly look: string;
}

const Row = memo(({ entry, footer, look }: RowProps) => (
  <li class={`entry from-${entry.kind}`}>
    <Content entry={entry} />
    {look && <p class="look">{look}</p>}
    {footer && <div class="usage">{footer}</div>}
  </li>
));

function Content({ entry }: { readonly entry: Entry }) {
  const { kind, name, text, failure } = entry;
  if (kind === "call") return <CallCard entry={entry} />;
  if (failure) return <FailureCard text={text} {...failure} />;
  return (
    <>
      <div class="who">{name === undefined ? authors[kind] : `${authors[kind]}, ${name}`}</div>
      {kind === "agent" ? <Markdown text={text} /> : <div class="text plain">{text}</div>}
    </>
  );
}

/** The kinds of failures, in words. */
const failures: Readonly<Record<string, string>> = {
  rate_limited: "Too many requests or tokens",
  overloaded: "The provider of the model has no capacity",
  unavailable: "The provider of the model is not available",
  unauthorized: "The provider of the model refused the key",
  context: "The request is larger than the model's context",
  internal: "Internal error",
};

/** The failure of a run or of a request. Without an `onError` of its own, the server writes the error to its terminal in the same words. */
function FailureCard({ text, code, id, run }: Failure & { readonly text: string }) {
  return (
    <div class="failure" role="alert">
      <div class="who">{failures[code] ?? "The request failed"}</div>
      <div class="text plain">{text}</div>
      <dl>
        <dt>Code</dt>
        <dd class="code">{code}</dd>
        {id !== undefined && <dt>Error id</dt>}
        {id !== undefined && <dd class="code">{id}</dd>}
      </dl>
      {id !== undefined && (
        <p class="hint">
          In the terminal: <code>Error {id}{run !== undefined && ` in run ${run}`}</code>
        </p>
      )}
    </div>
  );
}
