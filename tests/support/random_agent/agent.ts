/**
 * Random agents: the seed chooses the model's responses, the tools, the hooks and the subagents.
 *
 * @module
 */
import {
  type Agent,
  agent,
  type AnyTool,
  type Limits,
  type Model,
  ModelError,
  type Run,
  type Scope,
  tool,
  type ToolExecutionContext,
} from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { type Chance, seeded } from "../seeded.ts";
import { answering } from "./at_once.ts";
import { type Person, person, type Vars } from "./person.ts";
import { counts, type Quirk, quirksBy } from "./quirks.ts";
import { asTool } from "@jizai/jizai/subagents";

/** An agent that is created again in each process. */
export interface RandomAgent {
  /** The person who answers its questions. */
  readonly person: Person;
  /** Creates the agent. `done` receives the effects of its tools. */
  make(done: Done[]): Agent<Vars, string>;
}

/** The effect of a tool. */
export interface Done {
  /** The run and the ids of the calls that led to the effect, outermost first. */
  readonly place: string;
  /** The agents, the call, the tool and its input. */
  readonly what: string;
  readonly idempotent: boolean;
  /** The journaled step of the call. Default: the effect is in none. */
  readonly step?: string;
}

/** The script of an agent. */
interface Role {
  readonly name: string;
  readonly steps: readonly ScriptedStep[];
  readonly quirks: readonly Quirk[];
  readonly limits: Partial<Limits>;
  readonly helper: Role | undefined;
}

/** Options of a random agent. */
export interface RandomAgentOptions {
  /** Whether nothing is removed: no hook ends the run, and the transcript keeps all messages. Default: false. */
  readonly tame?: boolean;
}

/** Creates the agent of `seed`. */
export function randomAgent(seed: number, { tame = false }: RandomAgentOptions = {}): RandomAgent {
  const role = roleBy(seeded(seed), tame, "root", 2);
  const asked = person(seed);
  return { person: asked, make: (done) => made(role, asked, done) };
}

function roleBy(chance: Chance, tame: boolean, name: string, depth: number): Role {
  const { below, one } = chance;
  const helper = depth > 0 && below(3) > 0 ? roleBy(chance, tame, `${name}_helper`, depth - 1) : undefined;
  const steps = Array.from(
    { length: 1 + below(3) },
    (_, turn) => stepBy(chance, `${name}_${turn}`, helper !== undefined),
  );
  const limits = {
    parallel: one([1, 2, 64]),
    ...(below(6) === 0 && { calls: 1 + below(5) }),
    ...(below(6) === 0 && { turns: 1 + below(3) }),
    ...(below(6) === 0 && !tame && { context: 20 + below(100) }),
  };
  return { name, steps, quirks: quirksBy(chance, tame), limits, helper };
}

/** Returns the script of a model for one turn. */
function stepBy({ below, one }: Chance, id: string, helped: boolean): ScriptedStep {
  const tools = [
    "read",
    "read",
    "send",
    "pay",
    "perhaps",
    "flaky",
    "order",
    ...helped ? ["helper", "helper"] : [],
    "missing",
  ];
  const calls = Array.from({ length: below(5) }, (_, index) => {
    const name = tools[below(tools.length)] ?? "read";
    const input = name === "helper"
      ? { prompt: "Help me." }
      : one([{ n: below(20) }, { n: below(20) }, { n: "?" }, "{"]);
    return { id: `${id}_${index}`, name, input };
  });
  return {
    text: one(["", `I do ${id}.`]),
    calls,
    ...(below(8) === 0 && { error: new ModelError("Overloaded", { recoverable: true }) }),
  };
}

function made({ name, steps, quirks, limits, helper }: Role, person: Person, done: Done[]): Agent<Vars, string> {
  const failed = new Set<string>();
  const model = ({ run }: Scope): Model => ({
    id: name,
    stream(request, options) {
      const { turns } = run.used;
      const step = steps[turns - 1] ?? { text: `Done in ${turns}.` };
      const asked = `${run.id} ${turns}`;
      if (!failed.has(asked)) {
        failed.add(asked);
        return scripted(step).stream(request, options);
      }
      const { error: _, ...well } = step;
      return scripted(well).stream(request, options);
    },
  });
  const child = helper && asTool(made(helper, person, done), { name: "helper", description: "Helps" });
  return agent<Vars>({
    name,
    model,
    tools: [...tools(done), ...child ? [child] : []],
    use: [
      compaction({ summarize: false }),
      counts(),
      ...name === "root" ? answering(person) : [],
      ...quirks.map((quirk) => quirk()),
    ],
    limits,
  });
}

function placeOf(run: Run, call: string): string {
  return run.parent && run.call !== undefined ? `${placeOf(run.parent, run.call)}/${call}` : `${run.id}:${call}`;
}

/** The input of every tool. It is created once, because Zod compiles each schema. */
const input = z.object({ n: z.number() });

/** Creates tools that describe their effects. */
function tools(done: Done[]): readonly AnyTool<Vars>[] {
  const failed = new Set<string>();
  const make = (
    name: string,
    { idempotent = false, ask = false }: { idempotent?: boolean; ask?: boolean | ((input: { n: number }) => boolean) },
  ) =>
    tool<typeof input, string, Vars>({
      name,
      description: "Does something",
      input,
      idempotent,
      ask,
      async execute({ n }, { idempotencyKey: key, callId, run, vars, step }) {
        await vars.linger();
        const place = placeOf(run, callId);
        const what = [...run.path, callId, name, n].join(" ");
        if (name === "order") {
          return await orderInSteps(n, step, (step) => done.push({ place, what, idempotent: true, step }));
        }
        if (name === "flaky" && !failed.has(key)) {
          failed.add(key);
          throw new Error("Flaky");
        }
        done.push({ place, what, idempotent });
        await vars.linger();
        return `${name} did ${n}.`;
      },
    });
  return [
    make("read", { idempotent: true }),
    make("send", {}),
    make("pay", { ask: true }),
    make("perhaps", { ask: ({ n }) => n % 2 === 1 }),
    make("flaky", { idempotent: true }),
    make("order", {}),
  ];
}

/** Does two things in parallel, and then a third, each in a step. */
async function orderInSteps(
  n: number,
  step: ToolExecutionContext["step"],
  add: (step: string) => void,
): Promise<string> {
  const run = (name: string) =>
    step(name, () => {
      add(name);
      return { [name]: n };
    });
  const first = await Promise.all([run("charge"), run("pack")]);
  return JSON.stringify([...first, await run("ship")]);
}
