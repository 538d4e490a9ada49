/**
 * The runs of the conversation, and the trace of one of them.
 *
 * @module
 */
import { useEffect, useState } from "hono/jsx/dom";
import { type Prices, spendingOf, timeOf, wordsOf } from "../state/usage.ts";
import { recordOf, type RunRecord, type View } from "../state/view.ts";
import { Trace } from "./trace.tsx";

/** The properties of the list of runs. */
interface RunsProps {
  readonly view: View;
  readonly prices: Prices;
  readonly now: number;
}

/** The list of runs, and the trace of the selected one. A new run is selected when it begins. */
export function Runs({ view, prices, now }: RunsProps) {
  const [selected, select] = useState("");
  useEffect(() => select(""), [view.run]);
  const current = view.run === undefined ? [] : [recordOf(view, now)];
  const runs = [...view.past, ...current];
  const shown = runs.find(({ run }) => run === selected) ?? runs.at(-1);
  const spending = shown && spendingOf(view.turns.filter(({ run }) => run === shown.run), prices);
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
      <Trace
        key={shown.run}
        spans={shown.spans}
        isRunning={shown.run === view.run && view.status === "running"}
      />
    </>
  );
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
