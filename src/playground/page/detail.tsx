/**
 * The details of one bracket of the trace: the request and the response of a model, the input and the result of a call, or what a hook did.
 *
 * @module
 */
import { useEffect, useRef } from "hono/jsx/dom";
import type { Message } from "../../protocol/message.ts";
import { actsOf, type ModelRequested, type Span, timeOf, turnKeyOf, type View, wordsOf } from "./view.ts";

/** The properties of the details. */
interface DetailProps {
  readonly span: Span;
  readonly view: View;
  readonly close: () => void;
}

/** The details of a span, below the trace. Escape closes them. */
export function Detail({ span, view, close }: DetailProps) {
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus(), [span.key]);
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
          <ul>
            {actsOf(span).map(({ kind, text }) => <li key={text} class={`act ${kind}`}>{text}</li>)}
          </ul>
        )}
      </div>
    </section>
  );
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

function Field({ name, text }: { readonly name: string; readonly text: string }) {
  if (text === "") return null;
  return (
    <>
      <div class="label">{name}</div>
      <pre tabindex={0}>{text}</pre>
    </>
  );
}

/** Returns a message as text: its texts, its calls, or its results. */
function wordsOfMessage(message: Message): string {
  if (message.role === "tool") {
    return message.results.map(({ callId, status, parts }) => `${callId} ${status}: ${wordsOfParts(parts)}`).join("\n");
  }
  return wordsOfParts(message.parts);
}

function wordsOfParts(parts: readonly { readonly type: string; readonly text?: string }[]): string {
  return parts.map((part) => part.text ?? JSON.stringify(part)).join("\n");
}

function textOf({ kind, name, input, text }: View["entries"][number]): string {
  return kind === "call" ? `${name} ${input}` : text;
}
