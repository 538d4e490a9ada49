/**
 * Agents as tools: a call that is a run of its own.
 *
 * @module
 */
import type { PersonAnswer, Question } from "../protocol/question.ts";
import type { ToolResult } from "../protocol/message.ts";
import { user } from "../protocol/message.ts";
import type { Sink } from "../stream/channel.ts";
import { failed, text } from "./answers.ts";
import type { Blueprint, ChildRun } from "./blueprint.ts";
import type { Entry } from "./entry.ts";
import { lawOf, resettled } from "./law.ts";
import type { NumberedEvent } from "./events.ts";
import { Pause } from "./interrupt.ts";
import type { Live } from "./live.ts";
import type { Law } from "./onion.ts";
import type { ExecuteContext, RunResult, SubagentChange, SubagentContext } from "./points.ts";
import { start } from "./run.ts";
import { memory } from "./store.ts";
import { scopeOf } from "./scope.ts";

/** The law of `subagent`. */
export const subagentLaw: Law<SubagentContext, SubagentChange, RunResult, ChildRun> = lawOf("subagent", [
  "prompt",
  "settings",
], { derive: resettled });

/** Runs `blueprint` for a call. */
export async function runChild(blueprint: Blueprint, ctx: ExecuteContext, entry: Entry): Promise<ToolResult> {
  const { live } = entry;
  const { signal, callId: call, input } = ctx;
  const depth = live.path.length + 1;
  if (depth > live.limits.depth) return failed(`Not run: agents may be ${live.limits.depth} deep.`);
  const { prompt } = input as { readonly prompt: string }; // parsed by the schema of asTool()
  const context: SubagentContext = {
    ...scopeOf(ctx),
    child: blueprint.name,
    prompt: user(prompt),
    depth,
    call,
    settings: {},
  };
  const wait = live.crew.take(live.at(signal));
  if (wait) await wait;
  let result: RunResult;
  try {
    result = await live.blueprint.onions.subagent(context, { blueprint, parent: live, entry });
  } finally {
    live.crew.give();
  }
  if (result.status === "done") return text(result.text);
  if (result.status === "aborted") signal.throwIfAborted();
  if (result.status === "paused") {
    throw new Pause(result.questions.map((question) => fromChild(call, blueprint.name, question)));
  }
  return failed(`${blueprint.name} did not finish: ${result.reason ?? result.status}`);
}

/** A question of a child, as its parent asks it. */
function fromChild(call: string, child: string, { callId = "", path = [], ...question }: Question): Question {
  return { ...question, callId: `${call}/${callId}`, path: [child, ...path] };
}

/** The answers that are for a child, as it is given them: once, since it keeps them itself. */
function forChild(call: string, live: Live): PersonAnswer[] {
  const answers: PersonAnswer[] = [];
  live.answered = live.answered.map((answered) => {
    const { answer, taken } = answered;
    if (taken || !answer.callId?.startsWith(`${call}/`)) return answered;
    const { callId, ...rest } = { ...answer, callId: answer.callId.slice(call.length + 1) };
    answers.push((callId === "" ? rest : { ...rest, callId }) as PersonAnswer); // as the child asked
    return { ...answered, taken: true };
  });
  return answers;
}

/** The core of `subagent`: runs the child, its events among the parent's. One that waited for a person goes on. */
export async function runSubagent(ctx: SubagentContext, { blueprint, parent, entry }: ChildRun): Promise<RunResult> {
  const { emit, call, child: agent, prompt, settings, signal, vars } = ctx;
  const sink: Sink<NumberedEvent> = {
    write: ({ event }) => emit({ type: "subagent.event", call, agent, event }),
    cork: () => parent.sink.cork(),
    uncork: () => parent.sink.uncork(),
    get full() {
      return parent.sink.full;
    },
    close() {},
  };
  const { child: paused } = entry;
  const store = memory();
  if (paused) await store.save({ ...paused, version: 0 });
  const started = start(parent.blueprint.heir(blueprint), {
    ...(paused ? { session: paused.id, answers: forChild(call, parent) } : { messages: [prompt] }),
    store,
    signal,
    vars,
    parent: { live: parent, call, settings },
  }, sink);
  parent.events.announce(emit, { type: "subagent.started", call, agent, run: (await started.opened).run });
  const result = await started.result;
  entry.child = result.status === "paused" ? await store.load(result.session) : undefined;
  const { status, text: said } = result;
  const partial = status !== "done" && said !== "" && { text: said }; // the model is not told of it
  parent.events.announce(emit, { type: "subagent.finished", call, agent, status, ...partial });
  return result;
}
