/**
 * The details of one bracket of the trace: the request and the response of a model, the input and the result of a call, or what a hook did and changed.
 *
 * @module
 */
import { useEffect, useRef } from "hono/jsx/dom";
import type { HookChange } from "../../protocol/event.ts";
import type { BenchCall } from "./bench.tsx";
import { differenceOf, folded, textOfValue, wordsOfMessage } from "./difference.ts";
import { actsOf, type ModelRequested, type Span, symbolOf, timeOf, turnKeyOf, type View, wordsOf } from "./view.ts";

/** The properties of the details. */
interface DetailProps {
  readonly span: Span;
  readonly view: View;
  readonly close: () => void;
  /** Puts a call on the bench. Undefined on the bench itself. */
  readonly runAlone?: ((call: BenchCall) => void) | undefined;
}

/** The details of a span, below the trace. Escape closes them. */
export function Detail({ span, view, close, runAlone }: DetailProps) {
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    panel.current?.focus();
    const row = document.querySelector(`#onion [data-span="${span.key}"]`);
    row?.scrollIntoView({ block: "nearest" });
    row?.setAttribute("aria-current", "true"); // here, so that the other rows are not drawn again
    return () => row?.removeAttribute("aria-current");
  }, [span.key]);
  const turn = view.turns.find(({ key }) => key === span.subject);
  const entry = view.entries.find(({ key }) => key === span.subject);
  return (
    <section
      id="detail"
      ref={panel}
      tabindex={-1}
      aria-label={`Details of ${span.name}`}
      onKeyDown={({ key }: KeyboardEvent) => key === "Escape" && close()}
    >
      <div class="head">
        <h2>{span.name}</h2>
        <span class="ms">{span.to === undefined ? "" : timeOf(span.to - span.from)}</span>
        {runAlone && entry && canRun(entry) && (
          <button
            type="button"
            onClick={() => runAlone({ name: span.name, input: entry.edited ?? entry.input })}
          >
            Run alone
          </button>
        )}
        <button type="button" onClick={close}>Close</button>
      </div>
      <div class="body">
        {turn && turn.request && <Request {...turn.request} />}
        {turn && !turn.request && <p class="hint">The request is shown if the agent has a trace.</p>}
        {turn && (
          <>
            <Field
              name="Response"
              text={view.entries.flatMap((each) => turnKeyOf(each) === turn.key ? [textOf(each)] : []).join("\n\n")}
            />
            {turn.usage && (
              <p class="hint">{wordsOf({ cached: 0, cacheWrite: 0, reasoning: 0, ...turn.usage })} · {span.outcome}</p>
            )}
          </>
        )}
        {entry && (
          <>
            <Field name="Input" text={entry.input ?? ""} />
            {entry.edited !== undefined && <Field name="Input that ran" text={entry.edited} />}
            {span.verdict !== undefined && <p class="hint">{span.verdict}</p>}
            <Field name={`Result: ${entry.status ?? ""}`} text={entry.text} />
          </>
        )}
        {span.kind === "hook" && (
          <ul class="acts">
            {actsOf(span).map(({ kind, text }) => (
              <li key={text} class={`act ${kind}`}>
                <span aria-hidden="true">{symbolOf(kind)}</span> {text}
              </li>
            ))}
          </ul>
        )}
        {span.changes?.map((change, index) => <Change key={index} change={change} />)}
      </div>
    </section>
  );
}

/** Whether the agent itself can run a call: not a call of a subagent or of the provider. */
function canRun({ key }: View["entries"][number]): boolean {
  return !/\/| provider /.test(key);
}

/** A request as it was sent. */
function Request({ instructions, messages, omitted, tools, attempt }: ModelRequested) {
  return (
    <>
      {attempt > 1 && <p class="hint">Attempt {attempt}</p>}
      <Field name="Instructions" text={instructions} />
      <div class="label">Messages</div>
      {omitted > 0 && <p class="hint">{omitted} earlier messages are left out.</p>}
      <ol class="messages">
        {messages.map((message, index) => (
          <li key={index}>
            <span class="role">{message.role}</span>
            <pre>{wordsOfMessage(message)}</pre>
          </li>
        ))}
      </ol>
      <details>
        <summary>{tools.length} tools</summary>
        <dl>
          {tools.map(({ name, description, schema }) => (
            <>
              <dt class="code">{name}</dt>
              <dd>
                {description}
                <pre>{JSON.stringify(schema, null, 2)}</pre>
              </dd>
            </>
          ))}
        </dl>
      </details>
    </>
  );
}

/** A value that a hook changed: what is gone is crossed out, and what is new is underlined. */
function Change({ change: { key: path, before, after, same = 0 } }: { readonly change: HookChange }) {
  const [old, now] = [textOfValue(before), textOfValue(after)];
  const pieces = folded(differenceOf(old, now));
  return (
    <>
      <div class="label">
        <span class="code">{path}</span> {before === undefined && <span class="hint">had no value before</span>}
      </div>
      {old === now && <p class="hint">The difference is masked.</p>}
      {same > 0 && <p class="hint">Left out, because they are the same: {same}</p>}
      <pre class="difference" tabindex={0} aria-label={`Change of ${path}`}>
        {pieces.map(({ kind, text }, index) => {
          if (kind === "removed") return <del key={index}>{text}</del>;
          return kind === "added" ? <ins key={index}>{text}</ins> : <span key={index}>{text}</span>;
        })}
        {pieces.length === 0 && <span class="hint">empty</span>}
      </pre>
    </>
  );
}

function Field({ name, text }: { readonly name: string; readonly text: string }) {
  if (text === "") return null;
  return (
    <>
      <div class="label">{name}</div>
      <pre tabindex={0}>{text}</pre>
    </>
  );
}

function textOf({ kind, name, input, text }: View["entries"][number]): string {
  return kind === "call" ? `${name} ${input}` : text;
}
