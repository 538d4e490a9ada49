/**
 * The stage: an agent around the middleware under test, that does all there is to do in a few ticks and always the same.
 *
 * @module
 */
import { type Agent, agent } from "../core/agent.ts";
import type { Limits } from "../core/limits.ts";
import type { Middleware } from "../core/points.ts";
import { type Schema, schemaOf } from "../core/schema.ts";
import { type AnyTool, tool } from "../core/tool.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { scripted, type ScriptedStep } from "../model/scripted.ts";
import { textOf } from "../protocol/message.ts";

/** A call that the model makes. */
export type StageCall = readonly [name: string, input: unknown];

/** What stands on the stage beside the middleware. */
export interface StageOptions {
  readonly use: readonly Middleware[];
  readonly tools: readonly AnyTool[];
  /** What the model calls before it answers. */
  readonly calls: readonly StageCall[];
  /** What the model does at its first request instead. */
  readonly first?: ScriptedStep | undefined;
  readonly limits: Partial<Limits>;
  /** Told of every request, with the session it is for. */
  readonly onRequest?: (request: ModelRequest, session: string) => void;
}

/** Several tools at once: one that works, one that fails, an agent, one that is not there, and an input that cannot be read. */
export const usualCalls: readonly StageCall[] = [
  ["echo", { text: "Again" }],
  ["fail", {}],
  ["helper", { prompt: "Help" }],
  ["missing", {}],
  ["echo", "{"],
];

/** An agent that calls its tools, reads their results, and answers. */
export function stage({ use, tools, calls, first, limits, onRequest }: StageOptions): Agent<unknown, unknown> {
  return agent({
    name: "stage",
    model: ({ run }) => actor({ calls, first, onRequest: (request) => onRequest?.(request, run.session) }),
    instructions: "Play your part.",
    tools: [echo, fail, careful, helper, ...tools.map((tool) => Object.freeze({ ...tool }))],
    use,
    limits,
  });
}

interface ActorOptions {
  readonly calls: readonly StageCall[];
  readonly first?: ScriptedStep | undefined;
  readonly onRequest?: (request: ModelRequest) => void;
}

/** A model that has the prompt echoed, calls what else it is told to, and answers when it has seen results. */
function actor({ calls, first, onRequest }: ActorOptions): Model {
  let asked = 0;
  return {
    id: "actor",
    stream(request, options) {
      onRequest?.(request);
      asked++;
      const [prompt] = request.messages;
      const said = prompt?.role === "user" ? textOf(prompt) : "";
      const answered = calls.length === 0 || request.messages.some(({ role }) => role === "tool");
      const usual: ScriptedStep = answered
        ? { reasoning: "Hm.", text: ["That ", "is all."] }
        : { text: ["I look ", "it up."], calls: [["echo", { said }], ...calls] };
      return scripted(asked === 1 && first ? first : usual).stream(request, options);
    },
  };
}

/** A schema that takes whatever it is given. */
export const anything: Schema = schemaOf({ type: "object" });

const echo = tool({
  name: "echo",
  description: "Says what it is told",
  input: anything,
  async execute(input, { progress }) {
    progress("on it");
    await Promise.resolve();
    return JSON.stringify(input);
  },
});

const fail = tool({
  name: "fail",
  description: "Always fails",
  input: anything,
  execute: () => Promise.reject(new Error("fail always fails")),
});

const careful = tool({
  name: "careful",
  description: "Runs when a person agrees",
  input: anything,
  ask: true,
  execute: () => "Done with care.",
});

const helper = agent({ name: "helper", model: () => actor({ calls: [] }) })
  .asTool({ name: "helper", description: "An agent that helps" });
