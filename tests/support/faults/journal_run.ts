/**
 * A small run over a journal, with the positions, calls, pauses and mail of a real one. Its model, its person and its tools act at random.
 *
 * @module
 */
import { type Message, user } from "@jizai/jizai";
import type { MailEntry, PostedMail } from "../../../src/core/journal.ts";
import type { JournalProgress, JournalWriter } from "../../../src/core/journal_writer.ts";
import type { OpenedSession } from "../../../src/core/session_version.ts";
import { type CallRecord, noCounters, type Position, type RunSnapshot } from "../../../src/core/position.ts";
import type { Unsaved } from "../../../src/core/session.ts";
import type { Event } from "../../../src/protocol/event.ts";
import type { CallResult, ToolMessage } from "../../../src/protocol/message.ts";
import type { Call } from "../../../src/protocol/part.ts";
import type { Chance } from "../seeded.ts";

/** The reason of a run that has restored the transcript. */
export const rolledBackReason = "rolled back";

const noTokens = { input: 0, output: 0 };

/** The plan of a conversation: the tools that each turn of a run calls. "write" may have its effect once only, and "ask" waits for a person. */
export interface RunPlan {
  readonly turns: readonly (readonly ("read" | "write" | "ask")[])[];
  /** Replaces the transcript by a summary once it has more messages than this. */
  readonly compactAt: number;
}

/** Returns the session with a new run. It keeps the first `keep` messages, and the messages that a run before it has left behind. */
export function begin(opened: OpenedSession | undefined, id: string, prompt: string, keep = Infinity): Unsaved {
  const { session } = opened ?? {};
  const { position } = session?.run ?? {};
  const mail = opened?.mail.flatMap(({ mail }) => mail.type === "message" ? [mail.message] : []) ?? [];
  const left = position?.at === "tools" ? closed(position.message, position.calls, "skipped") : [];
  const messages = [...(session?.messages ?? []).slice(0, keep), ...left, ...inboxOf(session?.run), ...mail];
  return {
    id: "s",
    messages,
    ...(session?.compactions !== undefined && { compactions: session.compactions }),
    run: {
      id,
      startedAt: Date.now(),
      position: { at: "prompt", messages: [user(prompt)] },
      counters: noCounters,
      usage: noTokens,
      state: [],
      answers: [],
      before: messages.length,
      events: 0,
    },
  };
}

/** Returns the session with the run that continues, with answers to some of the questions of its pause. */
export function resumed({ session }: OpenedSession, answers: readonly string[], isLost: boolean): Unsaved {
  const { version: _, run, ...rest } = session;
  if (!run) throw new Error("There is no run");
  const { exit: _exit, recoveries = 0, ...kept } = run;
  const answered = answers.map((callId) => ({
    question: { callId, questions: ["Go?"] },
    answer: { callId, type: "approve" } as const,
  }));
  const counted = isLost ? { recoveries: recoveries + 1 } : {};
  return { ...rest, run: { ...kept, ...counted, answers: [...kept.answers, ...answered] } };
}

/** Returns the messages that a run has received and not delivered. */
function inboxOf(run: RunSnapshot | undefined): readonly Message[] {
  return (stateOf(run, "inbox") ?? []) as readonly Message[]; // written by this file
}

function stateOf(run: RunSnapshot | undefined, name: string): unknown {
  return run?.state.find(([each]) => each === name)?.[1];
}

function closed(
  message: Extract<Position, { at: "tools" }>["message"],
  calls: readonly CallRecord[],
  rest: CallResult["status"],
): readonly Message[] {
  const results = calls.map((record): CallResult => {
    if (record.state === "done") return record.result;
    return { callId: record.call.id, name: record.call.name, status: rest, parts: [] };
  });
  return [message, { role: "tool", results } satisfies ToolMessage];
}

/** A stop. It is saved with the run, since a process that takes over does not receive it again. */
type StopMail = Extract<PostedMail, { type: "stop" }>;

/** The world around a run. */
export interface RunScene {
  readonly chance: Chance;
  readonly plan: RunPlan;
  /** Passes a place at which the process may die. */
  place(): Promise<void>;
  /** Counts an effect of a tool. */
  effect(key: string): void;
}

/** A run of one process. */
export class JournalRun {
  readonly #scene: RunScene;
  readonly #writer: JournalWriter;
  #messages: readonly Message[];
  #compactions: number;
  /** The number of compactions before the run: a rollback does not go back over one. */
  readonly #compactionsBefore: unknown;
  #run: RunSnapshot;
  readonly #inbox: Message[];
  /** The stop that has arrived. */
  #stop: StopMail | undefined;

  constructor(scene: RunScene, writer: JournalWriter, { messages, compactions = 0, run }: Unsaved) {
    if (!run) throw new Error("There is no run");
    this.#scene = scene;
    this.#writer = writer;
    this.#messages = messages;
    this.#compactions = compactions;
    this.#compactionsBefore = stateOf(run, "compactions") ?? compactions;
    this.#run = run;
    this.#inbox = [...inboxOf(run)];
    this.#stop = (stateOf(run, "stop") ?? undefined) as StopMail | undefined; // written by this file
  }

  /** Receives mail. */
  receive({ mail }: MailEntry): void {
    if (mail.type === "message") this.#inbox.push(mail.message);
    if (mail.type === "stop") this.#stop ??= mail;
  }

  /** Works until the run ends or pauses. Resolves to false if another process has the session. */
  async work(): Promise<boolean> {
    for (let mayBeShown = this.#writer.events > 0;; mayBeShown = false) {
      await this.#scene.place();
      const { position } = this.#run;
      const shown = position.at === "model" && mayBeShown;
      const ended = this.#stop
        ? await this.#end("cancelled")
        : position.at === "tools"
        ? await this.#tools(position)
        : position.at === "prompt"
        ? await this.#accept(position)
        : await this.#model(position.at === "model" ? position.turn : 1, shown);
      if (ended !== undefined) return ended;
    }
  }

  async #accept({ messages }: Extract<Position, { at: "prompt" }>): Promise<false | undefined> {
    this.#messages = [...this.#messages, ...messages];
    return await this.#go({ at: "model", turn: 1 }, { type: "prompt.accepted" });
  }

  /** Asks the model: a part of its answer is shown before it is stored, and another one is made if the process dies. */
  async #model(turn: number, shown: boolean): Promise<boolean | undefined> {
    const { chance, plan } = this.#scene;
    if (shown && !await this.#writer.emit(() => [JSON.stringify({ type: "model.reset", turn })])) return false;
    if (this.#messages.length > plan.compactAt) { // by a change of its own: the history has only messages that were stored
      const kept = this.#messages.findLastIndex(({ role }) => role === "user");
      this.#messages = [user(`summary of ${this.#messages.length}`), ...this.#messages.slice(kept)];
      this.#compactions++;
      if (await this.#go({ at: "model", turn }, { type: "compacted" }) === false) return false;
    }
    let text = "";
    const deltas: Promise<boolean>[] = [];
    for (let left = chance.below(4); left > 0; left--) {
      const delta = `${turn}:${chance.below(1e6)} `;
      text += delta;
      const emitted = this.#writer.emit(() => [JSON.stringify({ type: "text.delta", turn, part: 0, text: delta })]);
      emitted.catch(() => {}); // it is awaited below
      deltas.push(emitted);
      if (chance.below(2) === 0) await emitted;
      await this.#scene.place();
    }
    await Promise.all(deltas); // an event that could not be stored is lost, and the run ends
    const tools = plan.turns[turn - 1];
    const calls = tools?.map((name, index): Call => ({
      id: `${this.#run.id}/${turn}.${index}`,
      name,
      input: { text: "x".repeat(chance.below(3) * 600) },
    })) ?? [];
    const message = {
      role: "assistant",
      parts: [{ type: "text", text }, ...calls.map((call) => ({ type: "call", ...call } as const))],
    } as const;
    const finished = { type: "model.finished", turn, text };
    if (tools) {
      const records = calls.map((call): CallRecord => ({ call, state: "pending" }));
      return await this.#go({ at: "tools", turn, message, calls: records }, finished);
    }
    this.#messages = [...this.#messages, message];
    if (this.#inbox.length > 0) return await this.#go(this.#delivered(turn + 1), finished);
    return await this.#end("done", finished);
  }

  /** Delivers the messages that have arrived. */
  #delivered(turn: number): Position {
    this.#messages = [...this.#messages, ...this.#inbox.splice(0)];
    return { at: "model", turn };
  }

  /** Executes the calls one after another, those that a process has begun and not ended first. Pauses if one waits for a person. */
  async #tools(position: Extract<Position, { at: "tools" }>): Promise<boolean | undefined> {
    const { chance } = this.#scene;
    const { turn, message } = position;
    let calls = position.calls;
    const set = (index: number, record: CallRecord) => {
      calls = calls.map((each, at) => at === index ? record : each);
      return { at: "tools", turn, message, calls } as const;
    };
    for (const [index, record] of position.calls.entries()) {
      const { call } = record;
      if (record.state === "done") continue;
      const answered = this.#run.answers.some(({ answer }) => answer.callId === call.id);
      if (call.name === "ask" && !answered) {
        const questions = [{ callId: call.id, questions: ["Go?"] }];
        if (record.state === "waiting") continue;
        if (
          await this.#go(set(index, { call, state: "waiting", questions }), {
            type: "approval.asked",
            call: call.id,
          }) === false
        ) return false;
        continue;
      }
      let text = `${call.id} was lost`;
      let status: CallResult["status"] = "error";
      if (record.state !== "running" || call.name === "read") {
        const running = { call, state: "running", name: call.name, input: call.input } as const;
        if (
          record.state !== "running" &&
          await this.#go(set(index, running), { type: "tool.started", call: call.id }) === false
        ) return false;
        await this.#scene.place();
        this.#scene.effect(`${call.name} ${call.id}`);
        await this.#scene.place();
        [text, status] = [`${call.id} made ${chance.below(1e9)}${"y".repeat(chance.below(3) * 700)}`, "ok"];
      }
      const result: CallResult = { callId: call.id, name: call.name, status, parts: [{ type: "text", text }] };
      if (
        await this.#go(set(index, { call, state: "done", result }), { type: "tool.finished", call: call.id, text }) ===
          false
      ) return false;
      if (this.#stop) return undefined;
    }
    if (calls.some(({ state }) => state === "waiting")) return await this.#pause(calls);
    this.#messages = [...this.#messages, ...closed(message, calls, "error")];
    return await this.#go(this.#delivered(turn + 1), { type: "turn.finished", turn });
  }

  /** Stores a position and the event that shows it. Resolves to false if the session was lost. */
  async #go(position: Position, event: object): Promise<false | undefined> {
    this.#run = { ...this.#run, position };
    return await this.#writer.put(() => this.#progress([event])) ? undefined : false;
  }

  #progress(events: readonly object[], last?: Event): JournalProgress {
    const lines = events.map((event) => JSON.stringify(event));
    const state = [
      ["inbox", [...this.#inbox]],
      ["stop", this.#stop ?? null],
      ["compactions", this.#compactionsBefore],
      ["note", "z".repeat(1_200)],
    ] as const;
    this.#run = { ...this.#run, events: this.#writer.events + lines.length + (last ? 1 : 0), state };
    const { exit, ...rest } = this.#run;
    const run = exit === undefined || exit.status === "paused" ? { run: { ...rest, ...(exit && { exit }) } } : {};
    const session = { id: "s", messages: this.#messages, compactions: this.#compactions, ...run };
    return { session, lines, waiting: this.#inbox.length, ...(last && { ended: last }) };
  }

  async #pause(calls: readonly CallRecord[]): Promise<boolean | undefined> {
    const questions = calls.flatMap((record) => record.state === "waiting" ? record.questions : []);
    let isStopped = false;
    const stored = await this.#writer.put(() => {
      isStopped = this.#stop !== undefined; // it has arrived before the pause was stored
      const { exit: _, ...run } = this.#run;
      this.#run = isStopped ? run : { ...run, exit: { status: "paused", questions } };
      return this.#progress([], isStopped ? undefined : { type: "run.paused", questions, usage: noTokens });
    });
    return stored ? isStopped ? undefined : true : false;
  }

  /** Ends the run. Messages that arrive before that are delivered: the transcript has them, or the run goes on. */
  async #end(status: "done" | "cancelled", event?: object): Promise<boolean | undefined> {
    const { position, before } = this.#run;
    const turn = position.at === "model" ? position.turn : 1;
    const late: Message[] = [];
    let start = this.#messages;
    let goesOn = false;
    const stored = await this.#writer.put(() => {
      goesOn = status === "done" && this.#stop === undefined && (goesOn || this.#inbox.length > 0);
      if (goesOn) {
        this.#run = { ...this.#run, position: this.#delivered(turn + 1) };
        start = this.#messages;
        return this.#progress(event ? [event] : []);
      }
      const rolledBack = this.#stop?.rollback === true && this.#compactions === this.#compactionsBefore;
      const left = position.at === "tools" ? closed(position.message, position.calls, "aborted") : [];
      late.push(...this.#inbox.splice(0));
      this.#messages = rolledBack ? start.slice(0, before) : [...start, ...left, ...late];
      const done = {
        type: "run.finished",
        status: this.#stop ? "cancelled" : status,
        text: "",
        ...(rolledBack && { reason: rolledBackReason }),
        usage: noTokens,
      } as const;
      this.#run = { ...this.#run, exit: { status } };
      return this.#progress(event ? [event] : [], done);
    });
    return stored ? goesOn ? undefined : true : false;
  }
}
