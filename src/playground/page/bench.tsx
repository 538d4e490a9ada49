/**
 * The bench: it runs one tool with an input, without a model.
 *
 * @module
 */
import { useEffect, useRef, useState } from "hono/jsx/dom";
import type { Conversation } from "./conversation.ts";
import { Detail } from "./detail.tsx";
import { SideQuestion } from "./question.tsx";
import { Trace } from "./runs.tsx";
import type { PageData } from "../page_data.ts";
import type { SideRun } from "./side_runs.ts";
import { isRunning, type View } from "./view.ts";

/** A call to put on the bench. */
export interface BenchCall {
  readonly name: string;
  /** The input, as JSON. Default: an input that the schema of the tool describes. */
  readonly input?: string | undefined;
}

/** The properties of the bench. */
interface BenchProps {
  readonly call: BenchCall;
  readonly tools: PageData["tools"];
  /** The call that was run last. */
  readonly last: SideRun | undefined;
  readonly conversation: Conversation;
  readonly close: () => void;
}

/** The bench: a form for the call, and its result. Escape closes it. */
export function Bench({ call, tools, last, conversation, close }: BenchProps) {
  const [name, setName] = useState(call.name);
  const [invalid, setInvalid] = useState("");
  const panel = useRef<HTMLElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const tool = tools.find((each) => each.name === name);
  useEffect(() => setName(call.name), [call]);
  useEffect(() => {
    if (field.current) field.current.value = name === call.name && call.input || exampleOf(tool?.schema ?? {});
  }, [call, name]);
  useEffect(() => panel.current?.focus(), [call]);
  const shown = last?.view.prompt === name ? last.view : undefined;
  return (
    <section id="bench" ref={panel} tabindex={-1} aria-label="Run a tool" onKeyDown={onKey}>
      <div class="head">
        <h2>Run a tool</h2>
        <button type="button" onClick={close}>Close</button>
      </div>
      <p class="hint">
        The hooks at <code>tool</code> and <code>approval</code>{" "}
        decide about the call as about one of the model, which is not asked. The run has a session of its own.
      </p>
      <form onSubmit={run}>
        <label>
          Tool
          <select
            value={name}
            onChange={({ target }: Event) => setName((target as HTMLSelectElement).value /* the select */)}
          >
            {tools.map((each) => <option key={each.name} value={each.name}>{each.name}</option>)}
          </select>
        </label>
        <p class="hint">{tool?.description}</p>
        <label>
          Input
          <textarea ref={field} class="code" spellcheck={false} rows={6} aria-describedby="invalid" />
        </label>
        <p id="invalid" class="problem" role="alert">{invalid}</p>
        <button type="submit" class="primary">Run</button>
      </form>
      {shown && last && <SideQuestion run={last} answer={(answer) => conversation.answerBeside("alone", answer)} />}
      <div aria-live="polite">{shown && <Outcome view={shown} />}</div>
    </section>
  );

  function run(event: Event): void {
    event.preventDefault();
    if (shown && isRunning(shown)) return; // a disabled button would lose the focus
    try {
      const input: unknown = JSON.parse(field.current?.value ?? "");
      setInvalid("");
      conversation.call(name, input);
    } catch (error) {
      setInvalid(error instanceof Error ? `The input is not JSON: ${error.message}` : "The input is not JSON.");
      field.current?.focus();
    }
  }

  function onKey({ key }: KeyboardEvent): void {
    if (key === "Escape") close();
  }
}

/** The trace of the call on the bench. */
export function BenchTrace({ view }: { readonly view: View }) {
  const [opened, open] = useState("");
  const span = view.spans.find(({ key }) => key === opened);
  return (
    <>
      <p id="totals">
        {view.prompt} alone · {view.status}
        <span class="code id" title="The id of the run">{view.run?.slice(0, 8)}</span>
      </p>
      <Trace key={view.run ?? ""} spans={view.spans} isRunning={isRunning(view)} open={open} />
      {span && <Detail span={span} view={view} close={() => open("")} />}
    </>
  );
}

/** The result of the call, with the input that ran if hooks or a person changed it, or the reason why there is none. */
function Outcome({ view: { entries, status, spans } }: { readonly view: View }) {
  const entry = entries.find(({ kind }) => kind === "call");
  const notes = entries.filter(({ kind }) => kind === "note");
  const verdict = spans.findLast(({ kind }) => kind === "call")?.verdict;
  return (
    <>
      {entry && (
        <>
          <div class="label">{[`Result: ${entry.status}`, verdict].filter(Boolean).join(" · ")}</div>
          <pre class="result" tabindex={0}>{entry.text || (status === "done" ? "empty" : "…")}</pre>
        </>
      )}
      {notes.map(({ key, text }) => <p key={key} class="problem">{text}</p>)}
    </>
  );
}

/** A JSON Schema, as far as it describes an example. */
interface ExampleSchema {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, ExampleSchema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly minimum?: number;
}

/** Returns an input with the required fields of a schema, as JSON. */
export function exampleOf(schema: ExampleSchema): string {
  return JSON.stringify(valueOf(schema), null, 2);
}

function valueOf(schema: ExampleSchema): unknown {
  const { type, properties = {}, required = [], minimum = 0 } = schema;
  const fixed = schema.default ?? schema.const ?? schema.enum?.[0];
  if (fixed !== undefined) return fixed;
  if (type === "string") return "";
  if (type === "number" || type === "integer") return Math.max(0, minimum);
  if (type === "boolean") return false;
  if (type === "array") return [];
  const fields = Object.entries(properties).filter(([name]) => required.includes(name));
  return Object.fromEntries(fields.map(([name, field]) => [name, valueOf(field)]));
}
