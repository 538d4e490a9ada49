/**
 * Agents as tools: a call that is a run of its own, and the middleware that it inherits.
 *
 * @module
 */
import { collectInnerCalls } from "./inner_calls.ts";
import type { Agent } from "../agent.ts";
import type { OpenCall } from "../call.ts";
import { type AgentDefinition, defineAgent } from "../definition.ts";
import type { NumberedEvent } from "../events.ts";
import { Pause } from "../interrupt.ts";
import { limited, type Limits } from "../limits.ts";
import { memoryJournal } from "../memory_journal.ts";
import { type Middleware, nameOf } from "../middleware.ts";
import type { ExecuteContext, RunResult, SubagentChange, SubagentContext } from "../points.ts";
import { endStatuses, mergeSettings, type PointPolicy, policyOf, requireStatus } from "../policy.ts";
import { failed, text } from "../hook_answers.ts";
import type { EngineRun } from "../run.ts";
import type { Session } from "../session.ts";
import { sessionsIn } from "../sessions.ts";
import { start } from "../start.ts";
import { schemaOf, type Tool, tool } from "../tool.ts";
import { type ToolResult, user } from "../../protocol/message.ts";
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import { expectNames } from "../../protocol/shape.ts";
import { SinkFilter } from "../../stream/channel.ts";

// Inheritance: the middleware of a parent agent that also applies in its subagents.

/** Returns `child` with the middleware that it inherits from `parent` around its own, and with their tools. */
function inheritFrom(
  parent: AgentDefinition,
  child: AgentDefinition,
): AgentDefinition {
  const inherited = parent.use.flatMap(inheritedPart).filter((part) => !child.use.includes(part["~origin"]));
  const tools = inherited.flatMap((middleware) => middleware.tools ?? []);
  return defineAgent({
    ...child,
    use: [...inherited, ...child.use],
    tools: [...new Set([...child.tools, ...tools])],
  });
}

/** Returns the part of a middleware that subagents inherit: its `approval` hook, unless it declares otherwise. */
function inheritedPart(
  middleware: Middleware,
  index: number,
): readonly (Middleware & { readonly "~origin": Middleware })[] {
  const { inherit, approval, "~origin": origin = middleware } = middleware;
  const part = { name: nameOf(middleware, index), "~origin": origin };
  if (inherit) return [{ ...middleware, ...part }];
  return inherit === undefined && approval ? [{ ...part, approval: approval.bind(middleware) }] : [];
}

// The tool that `asTool()` returns.

/** The options of `asTool()`. */
export interface AsToolOptions {
  /** The name that the model uses. Default: the agent's name. */
  readonly name?: string;
  /** The purpose of the agent, for the model. Default: the agent's description. */
  readonly description?: string;
  /** Changes of the agent's limits. */
  readonly limits?: Partial<Limits>;
}

/**
 * Returns an agent as a tool of another one: its input is a prompt, its result the answer. Throws a `TypeError` for a name that providers reject.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { asTool } from "@jizai/jizai/subagents";
 * import { assertEquals } from "@std/assert";
 *
 * const reader = agent({ name: "reader", description: "Reads a document", model: scripted("It says: be brief.") });
 * const editor = agent({
 *   model: scripted({ calls: [["reader", { prompt: "The rules" }]] }, "Done."),
 *   tools: [asTool(reader)],
 * });
 * const { text } = await editor.run("Make it good").result;
 * assertEquals(text, "Done.");
 * ```
 */
export function asTool<V, O>(
  agent: Agent<V, O>,
  options: AsToolOptions = {},
): Tool<{ prompt: string }, string, V> {
  expectNames("Cannot create asTool()", options, ["name", "description", "limits"]);
  const { name = agent.name, description = agent.description, limits } = options;
  const definition = agent["~definition"] as AgentDefinition; // agent() made it
  const child = { ...definition, limits: limited(definition.limits, limits) };
  /** The child of each parent, composed once. */
  const children = new WeakMap<object, AgentDefinition>();

  return {
    ...tool({ name, description, input: promptSchema(), execute: () => "" }),
    "~execute"(ctx: ExecuteContext, call: OpenCall) {
      const parent = call.scope.engine.definition;
      const composed = children.get(parent) ?? inheritFrom(parent, child);
      children.set(parent, composed);
      return collectInnerCalls(call, () => runChild(composed, ctx, call));
    },
  };
}

/** Returns the schema of the input, written by hand so that no schema library is needed. */
function promptSchema() {
  return schemaOf<{ prompt: string }>(
    {
      type: "object",
      properties: { prompt: { type: "string", description: "The task, with all that is needed to do it" } },
      required: ["prompt"],
    },
    (value) => {
      const { prompt } = Object(value);
      return typeof prompt === "string"
        ? { value: { prompt } }
        : { issues: [{ message: "expected a text", path: ["prompt"] }] };
    },
  );
}

/** Starts the child of one call, with what the hooks decided. */
type StartChild = (ctx: SubagentContext) => Promise<RunResult>;

const policy: PointPolicy<SubagentContext, SubagentChange, RunResult, StartChild> = /* @__PURE__ */ policyOf(
  "subagent",
  {
    core: (ctx, startChild) => startChild(ctx),
    derive: mergeSettings,
    finalize: /* @__PURE__ */ requireStatus("subagent", endStatuses),
  },
);

/** Runs a child for a call of its parent, with its events among the parent's. A child that has paused continues. */
async function runChild(
  child: AgentDefinition,
  { run, signal, emit, vars, callId: call, tool: { name: tool }, input }: ExecuteContext,
  { record, scope: { engine: parent } }: OpenCall,
): Promise<ToolResult> {
  const { path, limits, definition, events, onError } = parent;
  const { name: agent } = child;
  const depth = path.length + 1;
  if (depth > limits.depth) return failed(`Not run: subagents may nest at most ${limits.depth} deep.`);
  const { prompt } = input as { readonly prompt: string }; // parsed by promptSchema()
  const store = { journal: memoryJournal() };
  const { saved } = record as { readonly saved?: Session }; // the child's pause saved it
  const sessions = sessionsIn(store.journal);
  if (saved) await sessions.save({ ...saved, version: 0 });

  const childRun = saved?.run?.id ?? crypto.randomUUID();

  async function startChild({ emit, prompt, settings, signal, vars }: SubagentContext): Promise<RunResult> {
    events.emitThrough(emit, { type: "subagent.started", call, agent, run: childRun }); // a filter may refuse it: then the child does not begin
    const startInput = saved ? { session: saved.id, answers: answersForChild(call, parent) } : { messages: [prompt] };
    const write = ({ event }: NumberedEvent) => emit({ type: "subagent.event", call, agent, event });
    const options = {
      ...startInput,
      run: childRun,
      limits: { depth: Math.min(limits.depth, child.limits.depth) }, // the smallest limit of the chain holds
      store,
      signal,
      vars,
      onError,
      parent: { run: parent, call, tool, settings },
    };
    const { ready, result } = start(child, options, new SinkFilter(parent.sink, write, () => {}));
    await ready; // throws the reason why the child cannot begin, which is no result of the child
    const { status, text } = await result;
    const partial = status !== "done" && text !== "" && { text }; // for clients: the model does not read it
    events.emitThrough(emit, { type: "subagent.finished", call, agent, status, ...partial });
    return result;
  }

  const ctx = { run, signal, emit, vars, child: agent, prompt: user(prompt), depth, call, childRun, settings: {} };
  const result = await definition.onions.subagent(ctx, startChild, policy);
  const { status, finish, output, reason = status } = result;
  if (status === "done") {
    const isWhole = output !== undefined || !/^(length|filter|refusal|empty)$/.test(finish ?? "");
    if (isWhole) return text(result.text);
    const note = failed(`${agent} did not finish: ${finish}`);
    return result.text === "" ? note : { ...note, parts: [...text(result.text).parts, ...note.parts] };
  }
  if (status === "aborted") signal.throwIfAborted();
  if (status !== "paused") return failed(`${agent} did not finish: ${reason}`);
  const questions = result.questions.map((question) => questionOfChild(call, tool, question));
  throw new Pause(questions, await sessions.load(result.session));
}

/** Returns a question of a child as its parent asks it. */
function questionOfChild(call: string, tool: string, { callId = "", path = [], ...question }: Question): Question {
  return { ...question, callId: `${call}/${callId}`, path: [tool, ...path] };
}

/** Returns the answers to the questions that a child asks. */
function answersForChild(call: string, { loop }: EngineRun): PersonAnswer[] {
  return loop.answers.flatMap(({ answer: { callId = "", ...answer }, taken: isReceived }) => {
    const childCallId = callId.slice(call.length + 1);
    if (isReceived || callId !== `${call}/${childCallId}`) return [];
    return [{ ...answer, ...(childCallId && { callId: childCallId }) } as PersonAnswer]; // the child's own question has no id
  });
}
