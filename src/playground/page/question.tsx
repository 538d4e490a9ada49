/**
 * The card that asks the person. It stays in view above the text field.
 *
 * @module
 */
import { useEffect, useRef, useState } from "hono/jsx/dom";
import type { SideRun } from "./side_runs.ts";
import type { PersonAnswer, Question } from "../../protocol/question.ts";

/** The properties of the card. */
interface QuestionProps {
  readonly question: Question;
  /** The number of open questions. */
  readonly count: number;
  /** The reason why the server refused the last answer; empty if it did not. */
  readonly refusal: string;
  /** True once an answer was sent, until it is accepted or refused. */
  readonly isSent: boolean;
  readonly answer: (answer: PersonAnswer) => void;
}

/** The card of a question: about the whole run, or about a call. */
export function QuestionCard(props: QuestionProps) {
  return props.question.callId === undefined ? <RunQuestion {...props} /> : <CallQuestion {...props} />;
}

/** The card of the first question of a run beside the conversation, if it asks one. */
export function SideQuestion(
  { run: { view, problem }, answer }: { readonly run: SideRun; readonly answer: (answer: PersonAnswer) => void },
) {
  const { status, questions: [question, ...others], run, at } = view;
  if (!question || status !== "paused" && status !== "starting") return null;
  return (
    <QuestionCard
      key={`${run} ${at} ${question.callId}`}
      question={question}
      count={others.length + 1}
      refusal={problem}
      isSent={status === "starting"}
      answer={answer}
    />
  );
}

function RunQuestion({ question, count, refusal, isSent, answer }: QuestionProps) {
  const [text, setText] = useState("");
  return (
    <form class="question" aria-labelledby="question-title" onSubmit={reply}>
      <Title words="The agent asks" count={count} />
      <div class="fields">
        <p class="asked">{question.questions.join(" ")}</p>
        <label>
          Your answer<textarea rows={2} onInput={(event: InputEvent) => setText(valueOf(event))} />
        </label>
        <p class="problem" role="alert">{refusal}</p>
      </div>
      <div class="actions">
        <button type="submit" class="primary" disabled={isSent}>Reply</button>
      </div>
    </form>
  );

  function reply(event: Event): void {
    event.preventDefault();
    answer({ type: "reply", text });
  }
}

/** A question about a call: it can be approved, with its input or a changed one, denied, or answered in place of the tool. */
function CallQuestion({ question, count, refusal, isSent, answer }: QuestionProps) {
  const { callId = "", tool = "the tool", input, questions, path = [] } = question;
  const inputText = JSON.stringify(input, null, 2) ?? "";
  const inputField = useRef<HTMLTextAreaElement>(null);
  const [words, setWords] = useState("");
  const [isAlways, setAlways] = useState(false);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (refusal) inputField.current?.focus();
  }, [refusal]);
  return (
    <form class="question" aria-labelledby="question-title" onSubmit={approve}>
      <Title words={`Approve ${[...path, tool].join(" › ")}?`} count={count} />
      <div class="fields">
        <p class="asked">{questions.join(" ")}</p>
        <label>
          Input of {tool}
          <textarea
            ref={inputField}
            class="code"
            spellcheck={false}
            rows={Math.min(6, inputText.split("\n").length)}
            value={inputText}
            aria-describedby="problem"
          />
        </label>
        <p id="problem" class="problem" role="alert">{problem || refusal}</p>
        <label>
          Reason to deny, or an answer in its place
          <textarea rows={1} onInput={(event: InputEvent) => setWords(valueOf(event))} />
        </label>
      </div>
      <div class="actions">
        <button type="submit" class="primary approve" disabled={isSent}>Approve</button>
        <button
          type="button"
          class="deny"
          disabled={isSent}
          onClick={() => answer({ callId, type: "deny", ...(words && { reason: words }) })}
        >
          Deny
        </button>
        <button type="button" disabled={isSent} onClick={() => answer({ callId, type: "reply", text: words })}>
          Answer instead
        </button>
        <label class="always">
          <input type="checkbox" onChange={() => setAlways(!isAlways)} /> Do not ask about {tool} again
        </label>
      </div>
    </form>
  );

  function approve(event: Event): void {
    event.preventDefault();
    const text = inputField.current?.value ?? inputText;
    const rule = isAlways ? { always: "tool" } as const : {};
    setProblem("");
    try {
      const changed = text === inputText ? {} : { input: JSON.parse(text) };
      answer({ callId, type: "approve", ...changed, ...rule });
    } catch (error) {
      setProblem(error instanceof Error ? `The input is not JSON: ${error.message}` : "The input is not JSON.");
      inputField.current?.focus();
    }
  }
}

function Title({ words, count }: { readonly words: string; readonly count: number }) {
  return (
    <h2 id="question-title">
      {words}
      {count > 1 && <span class="count">1 of {count}</span>}
    </h2>
  );
}

function valueOf({ target }: Event): string {
  return target instanceof HTMLTextAreaElement ? target.value : "";
}
