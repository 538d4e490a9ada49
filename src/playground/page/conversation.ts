/**
 * The conversation of the page: its state, and what its user can do.
 *
 * @module
 */
import { type Connection, connectionOf, type Refusal } from "./connection.ts";
import { reduce } from "./reduce.ts";
import { edited, sideRuns, type SideRunsByKey } from "./side_runs.ts";
import { emptyView, type Entry, type Frame, isRunning, type RunRecord, startRun, type View } from "./view.ts";
import type { PersonAnswer } from "../../protocol/question.ts";

// The snapshots of the page: its state, which is stored over a reload, and the listeners that draw it.

/** The state of the page. */
export interface Snapshot {
  readonly view: View;
  /** The state of a lost connection; an empty text if it is not lost. */
  readonly connection: string;
  /** The text to put back into the text field: a message that was refused. */
  readonly refused: string;
  /** The reason why the answer to a question was refused; empty if it was not. */
  readonly problem: string;
  /** The names of the switches that are off. */
  readonly off: readonly string[];
  /** The runs beside the conversation. */
  readonly beside: SideRunsByKey;
  /** The time, in milliseconds since 1970. */
  readonly now: number;
}

/** The current snapshot and its listeners. */
interface Snapshots {
  /** The current snapshot. It changes only when the listeners are notified. */
  read(): Snapshot;
  /** Adds a listener and returns the function that removes it. */
  listen(listener: () => void): () => void;
  /** Changes the snapshot and notifies the listeners. */
  set(change: Partial<Snapshot>): void;
  /** Adds an event. The listeners are notified once for all events of an animation frame. */
  receive(frame: Frame): void;
}

/** Opens the snapshots with the view that the tab has stored, or with an empty one. */
function openSnapshots(storageKey: string): Snapshots {
  const listeners = new Set<() => void>();
  let isNotifyDue = false;
  let snapshot: Snapshot = {
    view: { ...emptyView, ...JSON.parse(sessionStorage.getItem(storageKey) ?? "{}") },
    connection: "",
    refused: "",
    problem: "",
    beside: {},
    off: JSON.parse(sessionStorage.getItem(`${storageKey} off`) ?? "[]"),
    now: now(),
  };
  addEventListener("pagehide", () => {
    store(storageKey, snapshot.view);
    sessionStorage.setItem(`${storageKey} off`, JSON.stringify(snapshot.off));
  });
  setInterval(() => isRunning(snapshot.view) && set({}), 250);

  return {
    read: () => snapshot,
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    set,
    receive(frame) {
      snapshot = { ...snapshot, view: reduce(snapshot.view, frame, now()) };
      if (isNotifyDue) return;
      isNotifyDue = true;
      requestAnimationFrame(notifyOnce);
    },
  };

  function set(change: Partial<Snapshot>): void {
    snapshot = { ...snapshot, ...change, now: now() };
    for (const listener of listeners) listener();
  }

  /** Notifies the listeners. The next frame is due after twice the time that this one takes, so that a large page still reacts to its user. */
  function notifyOnce(): void {
    const drawn = snapshot.view;
    const start = performance.now();
    set({});
    setTimeout(() =>
      // after the frame was drawn
      setTimeout(() => {
        isNotifyDue = snapshot.view !== drawn;
        if (isNotifyDue) requestAnimationFrame(notifyOnce);
      }, 2 * (performance.now() - start))
    );
  }
}

/** Returns the time, in milliseconds since 1970. */
function now(): number {
  return performance.timeOrigin + performance.now();
}

/** Stores the view for a reload. If it is too large, only the fields that name the run are stored. */
function store(storageKey: string, view: View): void {
  try {
    sessionStorage.setItem(storageKey, JSON.stringify(view));
  } catch {
    const { run, session, status, began } = view;
    sessionStorage.setItem(storageKey, JSON.stringify({ ...emptyView, run, session, status, began }));
  }
}

// The session that a server has forgotten.

const forgotten =
  "The server was started again, and it has not kept this session. Your next message begins a new one, with the texts above.";
const returned = "The message that you sent is in the text field again.";

/** A message of a request. */
interface Message {
  readonly role: "user" | "assistant";
  readonly parts: readonly [{ readonly type: "text"; readonly text: string }];
}

function message(text: string, role: Message["role"] = "user"): Message {
  return { role, parts: [{ type: "text", text }] };
}

/** Returns the texts of the conversation, for a session that begins with them. Those of subagents are left out. */
function historyOf(entries: readonly Entry[]): readonly Message[] {
  return entries.flatMap(({ kind, name, text }) => {
    if (kind === "you") return [message(text)];
    return kind === "agent" && name === undefined && text !== "" ? [message(text, "assistant")] : [];
  });
}

// The conversation.

/** The conversation of the page. */
export interface Conversation extends Pick<Snapshots, "read" | "listen"> {
  /** Begins a run, or sends the text to the one that is running. */
  submit(text: string): void;
  /** Answers a question of the paused run. */
  answer(answer: PersonAnswer): void;
  stop(): void;
  /** Lets the run answer once more, without tools, and end. */
  finish(): void;
  /** Runs the prompts of runs again, in a session of its own that begins with the texts before the first one. Tools run again, too. */
  again(runs: readonly RunRecord[]): void;
  /** Runs a tool with an input, without a model, in a session of its own. */
  call(name: string, input: unknown): void;
  /** Answers a question of a run beside the conversation. */
  answerBeside(key: string, answer: PersonAnswer): void;
  /** Turns a part of the agent off, or on again. */
  toggle(name: string): void;
  /** Leaves the conversation for a new one. */
  reset(): void;
}

/** Opens the conversation that the tab has stored, or a new one. */
export function openConversation(base: string): Conversation {
  const { read, listen, set, receive } = openSnapshots(`jizai ${base}`);
  let leaving = new AbortController();
  const server: Connection = connectionOf(base, {
    get signal() {
      return leaving.signal;
    },
    get view() {
      return read().view;
    },
    get off() {
      return read().off;
    },
    receive,
    setStatus: (status) => set({ view: { ...read().view, status } }),
    setConnection: (connection) => set({ connection }),
    fail,
  });

  const beside = sideRuns({ server, now, read: () => read().beside, set: (beside) => set({ beside }) });
  const { view } = read();
  const mayRun = isRunning(view) || view.status === "lost" && view.session !== undefined;
  if (view.run !== undefined && mayRun) server.follow();
  else if (isRunning(view)) fail({ text: "It is not known whether the server received this message." });

  return {
    read,
    listen,
    submit(text) {
      const { view } = read();
      if (view.status === "running") return void steer(text);
      const { session } = view;
      const history = session === undefined ? historyOf(view.entries) : [];
      const body = history.length > 0 ? { messages: [...history, message(text)] } : { session, prompt: text };
      set({ view: startRun(view, text, now()), refused: "", problem: "" });
      server.follow(server.post("/runs", body));
    },
    answer(answer) {
      const { view } = read();
      const { session = "", run, at, resumeToken } = view;
      set({ view: { ...edited(view, answer), status: "starting" }, problem: "" });
      const path = `/sessions/${encodeURIComponent(session)}/answers`;
      server.follow(server.post(path, { answers: [answer], run, at, resumeToken }));
    },
    async stop() {
      const { run, status } = read().view;
      // a paused run has no open stream, so its end is requested
      if (await send(`/runs/${run}/stop`) && status === "paused") server.follow();
    },
    finish: () => void send(`/runs/${read().view.run}/finish`),
    again(runs) {
      beside.again(runs, ({ run, prompt }) => {
        const { entries } = read().view;
        const before = entries.slice(0, entries.findIndex(({ key }) => key.startsWith(`${run} `)));
        return { messages: [...historyOf(before), message(prompt)] };
      });
    },
    call: beside.call,
    answerBeside: beside.answer,
    toggle(name) {
      const { off } = read();
      set({ off: off.includes(name) ? off.filter((each) => each !== name) : [...off, name] });
    },
    reset() {
      leaving.abort();
      leaving = new AbortController();
      set({ beside: {}, view: emptyView, connection: "", refused: "", problem: "" });
    },
  };

  /** Sends a message to the run. It is shown as waiting until it is delivered, and returns to the text field if it is refused. */
  async function steer(text: string): Promise<void> {
    const { view } = read();
    const key = `waits ${now()}`;
    set({ view: { ...view, entries: [...view.entries, { key, kind: "note", text: `Waits to be sent: ${text}` }] } });
    if (await send(`/runs/${view.run}/messages`, { text })) return;
    const entries = read().view.entries.filter((entry) => entry.key !== key);
    set({ view: { ...read().view, entries }, refused: text });
  }

  /** Sends a request and shows why it was refused, if it was. Returns whether it was accepted. */
  async function send(path: string, body?: unknown): Promise<boolean> {
    const refusal = await server.send(path, body);
    if (refusal !== undefined) addNote(refusal);
    return refusal === undefined;
  }

  /**
   * Shows an error. A prompt that began no run returns to the text field. A run with open questions is still paused; the error is shown beside the first of them.
   * The state of every other run is unknown. If the server does not know the session, it was started again without it: the next message begins a new one.
   */
  function fail(refusal: Refusal): void {
    const { view } = read();
    const { session, resumeToken: _, ...rest } = view;
    const refused = view.run === undefined ? view.prompt : "";
    if (session !== undefined && refusal.failure?.code === "unknown") {
      set({ view: { ...rest, status: "lost", questions: [] }, connection: "", refused });
      addNote({ text: refused === "" ? forgotten : `${forgotten} ${returned}` });
    } else if (view.questions.length > 0) {
      set({ view: { ...view, status: "paused" }, connection: "", problem: refusal.text });
    } else {
      set({ view: { ...view, status: "lost" }, connection: "", refused });
      addNote(refusal);
    }
  }

  function addNote(note: Refusal): void {
    const { view } = read();
    set({ view: { ...view, entries: [...view.entries, { key: `page ${now()}`, kind: "note", ...note }] } });
  }
}
