/**
 * Runs beside the conversation, each in a session of its own: prompts that are run again, and a call that is run alone.
 *
 * @module
 */
import type { Connection } from "./connection.ts";
import { reduce } from "./reduce.ts";
import { change, emptyView, isRunning, type RunRecord, startRun, type View } from "./view.ts";
import type { PersonAnswer } from "../../protocol/question.ts";

/** A run beside the conversation. */
export interface SideRun {
  readonly view: View;
  /** The reason why the answer to its question was refused; empty if it was not. */
  readonly problem: string;
}

/** The runs beside the conversation, by the id of the run that they repeat. The call that was run alone last has the key `alone`. */
export type SideRunsByKey = Readonly<Record<string, SideRun>>;

/** The state of the page, as side runs use it. */
export interface SideRunsHost {
  readonly server: Connection;
  /** The current runs. */
  read(): SideRunsByKey;
  set(runs: SideRunsByKey): void;
  /** Returns the time, in milliseconds since 1970. */
  now(): number;
}

/** The actions of the user beside the conversation. */
export interface SideRuns {
  /** Runs a tool with an input, without a model. */
  call(name: string, input: unknown): void;
  /** Runs prompts again, one after another in one session. `opening` returns the body of the first request. Ends at a run that is not done. */
  again(runs: readonly RunRecord[], opening: (run: RunRecord) => object): Promise<void>;
  /** Answers the question of a run. */
  answer(key: string, answer: PersonAnswer): void;
}

/** Creates the runs beside a conversation. */
export function sideRuns({ server, read, set, now }: SideRunsHost): SideRuns {
  return {
    call(name, input) {
      update("alone", startRun(emptyView, name, now()));
      follow("alone", server.post("/calls", { name, input }));
    },
    async again(runs, opening) {
      let session: string | undefined;
      for (const run of runs) {
        update(run.run, startRun(emptyView, run.prompt, now()));
        const body = session === undefined ? opening(run) : { session, prompt: run.prompt };
        const view = await follow(run.run, server.post("/runs", body));
        if (view?.status !== "done") return;
        session = view.session;
      }
    },
    answer(key, answer) {
      const { view = emptyView } = read()[key] ?? {};
      const { session = "", run, at, resumeToken } = view;
      update(key, { ...edited(view, answer), status: "starting" });
      const path = `/sessions/${encodeURIComponent(session)}/answers`;
      follow(key, server.post(path, { answers: [answer], run, at, resumeToken }));
    },
  };

  function update(key: string, view: View, problem = ""): void {
    set({ ...read(), [key]: { view, problem } });
  }

  /** Reads the events of a run to its end or its pause, and returns its view; undefined if another run has taken its place. */
  async function follow(key: string, opening: Promise<Response>): Promise<View | undefined> {
    const began = read()[key]?.view.began;
    const current = () => {
      const view = read()[key]?.view;
      return view?.began === began ? view : undefined;
    };
    const refusal = await server.read(opening, (frame) => {
      const view = current();
      if (view) update(key, reduce(view, frame, now()));
    });
    const view = current();
    if (!view || !isRunning(view)) return view;
    if (refusal && view.questions.length > 0) {
      update(key, { ...view, status: "paused" }, refusal.text);
    } else {
      const note = { key: `page ${now()}`, kind: "note", text: refusal?.text ?? "The connection was lost." } as const;
      update(key, { ...view, status: "lost", entries: [...view.entries, note] });
    }
    return current();
  }
}

/** Keeps the input of an answer in the entry of its call, if a person edited it. */
export function edited(view: View, answer: PersonAnswer): View {
  if (answer.type !== "approve" || answer.input === undefined) return view;
  return change(view, `${answer.callId}`, { edited: JSON.stringify(answer.input, null, 2) });
}
