/**
 * The agent around the middleware under test. It uses every feature within a few ticks, and always does the same.
 *
 * @module
 */
import { type Agent, agent } from "../../core/agent.ts";
import { compactionHooks } from "../../core/compaction.ts";
import { asTool } from "../../core/features/subagents.ts";
import type { Limits } from "../../core/limits.ts";
import type { Middleware } from "../../core/middleware.ts";
import { type AnyTool, type Schema, schemaOf, tool } from "../../core/tool.ts";
import type { Model, ModelRequest } from "../../model/model.ts";
import { scripted, type ScriptedStep } from "../../model/scripted.ts";
import { textOf } from "../../protocol/message.ts";

/** A call that the model makes. */
export type TestCall = readonly [name: string, input: unknown];

/** Options of `testAgent()`. */
export interface TestAgentOptions {
  readonly use: readonly Middleware[];
  readonly tools: readonly AnyTool[];
  /** The calls of the model before it answers. */
  readonly calls: readonly TestCall[];
  /** The model's first response, in place of these calls. */
  readonly first?: ScriptedStep | undefined;
  readonly limits: Partial<Limits>;
  /** Receives every request to the model, with its session. */
  readonly onRequest?: (request: ModelRequest, session: string) => void;
}

/** Parallel calls: of a tool that works, one that fails, an agent, an unknown tool, and with an input that is not JSON. */
export const defaultCalls: readonly TestCall[] = [
  ["echo", { text: "Again" }],
  ["fail", {}],
  ["helper", { prompt: "Help" }],
  ["missing", {}],
  ["echo", "{"],
];

/** Creates an agent that calls its tools, reads their results, and answers. */
export function testAgent({ use, tools, calls, first, limits, onRequest }: TestAgentOptions): Agent<unknown, unknown> {
  return agent({
    name: "test",
    model: ({ run }) => testModel({ calls, first, onRequest: (request) => onRequest?.(request, run.session) }),
    instructions: "Play your part.",
    tools: [echo, fail, careful, helper, ...tools.map((tool) => Object.freeze({ ...tool }))],
    use: [{ name: "test.compaction", ...compactionHooks }, ...use],
    limits,
    strict: true,
  });
}

interface TestModelOptions {
  readonly calls: readonly TestCall[];
  readonly first?: ScriptedStep | undefined;
  readonly onRequest?: (request: ModelRequest) => void;
}

/** Creates a model that calls `echo` with the prompt, makes the other calls, and answers after the results. */
function testModel({ calls, first, onRequest }: TestModelOptions): Model {
  let asked = 0;
  return {
    id: "testModel",
    stream(request, options) {
      onRequest?.(request);
      asked++;
      const [prompt] = request.messages;
      const text = prompt?.role === "user" ? textOf(prompt) : "";
      const answered = calls.length === 0 || request.messages.some(({ role }) => role === "tool");
      const usual: ScriptedStep = answered
        ? { reasoning: "Hm.", text: ["That ", "is all."] }
        : { text: ["I look ", "it up."], calls: [["echo", { text }], ...calls] };
      return scripted(asked === 1 && first ? first : usual).stream(request, options);
    },
  };
}

/** A schema that accepts every input. */
export const anyInput: Schema = schemaOf({ type: "object" });

const echo = tool({
  name: "echo",
  description: "Repeats its input",
  input: anyInput,
  async execute(input, { progress }) {
    progress("on it");
    await Promise.resolve();
    return JSON.stringify(input);
  },
});

const fail = tool({
  name: "fail",
  description: "Always fails",
  input: anyInput,
  execute: () => Promise.reject(new Error("fail always fails")),
});

const careful = tool({
  name: "careful",
  description: "Runs when a person agrees",
  input: anyInput,
  ask: true,
  execute: () => "Done with care.",
});

const helper = asTool(agent({ name: "helper", model: () => testModel({ calls: [] }) }), {
  name: "helper",
  description: "An agent that helps",
});
