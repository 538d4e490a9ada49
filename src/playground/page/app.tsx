/**
 * The page: the conversation, the trace, and the text field.
 *
 * @module
 */
import { useEffect, useRef, useState, useSyncExternalStore } from "hono/jsx/dom";
import { Bench, type BenchCall, BenchTrace } from "./bench.tsx";
import type { Conversation } from "./conversation.ts";
import { QuestionCard } from "./question.tsx";
import { Runs } from "./runs.tsx";
import { Transcript } from "./transcript.tsx";
import { isRunning } from "./view.ts";
import type { PageData } from "../page_data.ts";

// The text field.

/** The properties of the text field. */
interface ComposerProps {
  readonly status: string;
  /** A text to put back. */
  readonly refused: string;
  readonly submit: (text: string) => void;
  readonly stop: () => void;
}

/** The text field. Enter sends, Shift and Enter add a line, and Escape stops the run. */
function Composer({ status, refused, submit, stop }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  useEffect(() => {
    if (field.current) field.current.value ||= refused;
  }, [refused]);
  const isRunning = status === "running";
  return (
    <form id="composer" onSubmit={send}>
      <label>
        <span class="hidden">Message</span>
        <textarea
          id="words"
          ref={field}
          rows={1}
          placeholder={isRunning ? "Send a message to the run" : "Send a message"}
          aria-describedby="keys"
          onKeyDown={onKey}
        />
      </label>
      <button id="send" type="submit" class="primary">Send</button>
      <p id="keys" class="hint">
        <kbd>Enter</kbd> sends, <kbd>Shift Enter</kbd> adds a line, <kbd>Esc</kbd> stops the run
      </p>
    </form>
  );

  function send(event: Event): void {
    event.preventDefault();
    const text = field.current?.value.trim();
    if (!field.current || !text) return;
    field.current.value = "";
    submit(text);
  }

  function onKey(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) send(event);
    if (event.key === "Escape" && isRunning) stop();
  }
}

// The empty conversation: the agent, its model, its tools, and prompts to begin with.

/** The properties of the tour and of the empty conversation. */
interface TourProps {
  readonly data: PageData;
  /** The names of the switches that are off. */
  readonly off: readonly string[];
  readonly toggle: (name: string) => void;
  readonly submit: (prompt: string) => void;
}

/** The proposed prompts, each with what to look for, and the switches of the agent. */
function Tour({ data: { prompts, switches }, off, toggle, submit }: TourProps) {
  return (
    <>
      <ul class="prompts">
        {prompts.map(({ text, note, by }) => (
          <li key={text}>
            <button type="button" onClick={() => submit(text)}>
              <span class="words">{text}</span>
              {by !== undefined && <span class="by code">{by}</span>}
              {note !== undefined && <span class="note">{note}</span>}
            </button>
          </li>
        ))}
      </ul>
      {switches.length > 0 && (
        <fieldset class="switches">
          <legend>On</legend>
          {switches.map(({ name, note }) => (
            <label key={name} title={note}>
              <input type="checkbox" checked={!off.includes(name)} onChange={() => toggle(name)} />{" "}
              <span class="code">{name}</span>
              {off.includes(name) && <span class="note">{note}</span>}
            </label>
          ))}
        </fieldset>
      )}
    </>
  );
}

/** The properties of the empty conversation. */
interface EmptyProps extends TourProps {
  readonly runAlone: (call: BenchCall) => void;
}

/** Introduces the agent. A click on a tool puts it on the bench. */
function Empty({ data, runAlone, ...tour }: EmptyProps) {
  const { agent, model, tools } = data;
  return (
    <div id="empty">
      <h2>{agent}</h2>
      <dl>
        <dt>Model</dt>
        <dd class="code">{model ?? "picked for each request"}</dd>
        <dt>Tools</dt>
        <dd>
          {tools.length === 0 && "none"}
          <ul class="tools">
            {tools.map(({ name, description }) => (
              <li key={name}>
                {data.runsTools
                  ? (
                    <button type="button" class="code" title={description} onClick={() => runAlone({ name })}>
                      {name}
                    </button>
                  )
                  : <span class="code" title={description}>{name}</span>}
              </li>
            ))}
          </ul>
          {data.runsTools && tools.length > 0 && <p class="hint">A click on a tool runs it alone, with your input.</p>}
        </dd>
      </dl>
      {data.prompts.length > 0 && <h3>Try</h3>}
      <Tour data={data} {...tour} />
    </div>
  );
}

// The page.

const tabs = ["Conversation", "Trace"] as const;
type Tab = typeof tabs[number];

/** The page of a conversation. On a narrow screen, tabs select the conversation or the trace. */
export function App({ conversation, data }: { readonly conversation: Conversation; readonly data: PageData }) {
  const { view, connection, refused, problem, off, beside, now } = useSyncExternalStore(
    conversation.listen,
    conversation.read,
  );
  const [tab, setTab] = useState<Tab>("Conversation");
  const [bench, setBench] = useState<BenchCall>();
  const runAlone = (call: BenchCall) => {
    setBench(call);
    setTab("Conversation");
  };
  const { status, questions, run, at } = view;
  const [question] = status === "paused" || status === "starting" ? questions : []; // it stays until its answer is accepted
  const isEmpty = view.entries.length === 0 && !isRunning(view);
  const tour: TourProps = { data, off, toggle: conversation.toggle, submit: conversation.submit };
  return (
    <div class={`page ${tab.toLowerCase()}`}>
      <Header
        data={data}
        status={status}
        connection={connection}
        tab={tab}
        setTab={setTab}
        conversation={conversation}
        startOver={startOver}
      />
      <main aria-label="Conversation">
        {bench && (
          <Bench
            call={bench}
            tools={data.tools}
            last={beside.alone}
            conversation={conversation}
            close={() => setBench(undefined)}
          />
        )}
        {isEmpty && !bench && <Empty {...tour} runAlone={runAlone} />}
        <div class="transcript" hidden={bench !== undefined}>
          <Transcript view={view} prices={data.prices} prompts={data.prompts} />
        </div>
      </main>
      <aside aria-label="Trace">
        {bench && beside.alone ? <BenchTrace view={beside.alone.view} /> : (
          <Runs
            view={view}
            prices={data.prices}
            now={now}
            beside={beside}
            conversation={conversation}
            runAlone={data.runsTools ? runAlone : undefined}
          />
        )}
      </aside>
      <footer hidden={bench !== undefined} onKeyDown={leaveCard}>
        <div id="asked" aria-live="assertive">
          {question && (
            <QuestionCard
              key={`${run} ${at} ${question.callId}`}
              question={question}
              count={questions.length}
              refusal={problem}
              isSent={status === "starting"}
              answer={conversation.answer}
            />
          )}
        </div>
        {question && (
          <button type="button" class="to-question" onClick={() => setTab("Conversation")}>
            The run waits for you: {question.tool ?? "a question"}
          </button>
        )}
        {!isEmpty && !isRunning(view) && !question && data.prompts.length > 0 && (
          <details class="tour">
            <summary>Try another prompt</summary>
            <Tour {...tour} />
          </details>
        )}
        <Composer status={status} refused={refused} submit={conversation.submit} stop={conversation.stop} />
      </footer>
    </div>
  );

  function startOver(): void {
    conversation.reset();
    setBench(undefined);
    setTab("Conversation");
    document.getElementById("words")?.focus();
  }

  /** Escape in the card of a question leads to the text field. */
  function leaveCard({ key, target }: KeyboardEvent): void {
    if (key !== "Escape" || !(target instanceof Element) || !target.closest(".question")) return;
    document.getElementById("words")?.focus();
  }
}

/** The properties of the header. */
interface HeaderProps {
  readonly data: PageData;
  readonly status: string;
  readonly connection: string;
  readonly tab: Tab;
  readonly setTab: (tab: Tab) => void;
  readonly conversation: Conversation;
  readonly startOver: () => void;
}

/** The agent, the state of its run, the orders to the run, and the tabs. */
function Header({ data, status, connection, tab, setTab, conversation, startOver }: HeaderProps) {
  return (
    <header>
      <h1>{data.agent}</h1>
      {data.model !== undefined && <span class="model code">{data.model}</span>}
      <span id="state" class={connection || status} role="status">{connection || status}</span>
      <div class="actions">
        {status === "running" && (
          <button
            id="finish"
            type="button"
            title="Answers once more, without tools, and ends"
            onClick={conversation.finish}
          >
            Finish
          </button>
        )}
        {(isRunning({ status }) || status === "paused") && (
          <button id="stop" type="button" onClick={conversation.stop}>Stop</button>
        )}
        <button id="new" type="button" onClick={startOver}>
          New <span class="wide">conversation</span>
        </button>
      </div>
      <nav aria-label="View">
        {tabs.map((name) => (
          <button
            type="button"
            aria-pressed={tab === name ? "true" : "false"}
            onClick={() => setTab(name)}
          >
            {name}
          </button>
        ))}
      </nav>
    </header>
  );
}
