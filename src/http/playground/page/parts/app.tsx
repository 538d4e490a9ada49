/**
 * The page.
 *
 * @module
 */
import { useState, useSyncExternalStore } from "hono/jsx/dom";
import type { PageData } from "../../page_data.ts";
import type { Conversation } from "../state/conversation.ts";
import { isRunning } from "../state/view.ts";
import { Composer } from "./composer.tsx";
import { Empty } from "./empty.tsx";
import { QuestionCard } from "./question.tsx";
import { Runs } from "./runs.tsx";
import { Transcript } from "./transcript.tsx";

const tabs = ["Conversation", "Trace"] as const;
type Tab = typeof tabs[number];

/** The page of a conversation. On a narrow screen, tabs select the conversation or the trace. */
export function App({ conversation, data }: { readonly conversation: Conversation; readonly data: PageData }) {
  const { view, connection, refused, now } = useSyncExternalStore(conversation.listen, conversation.read);
  const [tab, setTab] = useState<Tab>("Conversation");
  const { status, questions, run, at } = view;
  const [question] = status === "paused" ? questions : [];
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
        {view.entries.length === 0 && !isRunning(view) && <Empty data={data} submit={conversation.submit} />}
        <Transcript view={view} prices={data.prices} />
      </main>
      <aside aria-label="Trace">
        <Runs view={view} prices={data.prices} now={now} />
      </aside>
      <footer onKeyDown={leaveCard}>
        <div id="asked" aria-live="assertive">
          {question && (
            <QuestionCard
              key={`${run} ${at} ${question.callId}`}
              question={question}
              count={questions.length}
              answer={conversation.answer}
            />
          )}
        </div>
        <Composer status={status} refused={refused} submit={conversation.submit} stop={conversation.stop} />
      </footer>
    </div>
  );

  function startOver(): void {
    conversation.reset();
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
