/**
 * One scenario under the hooks of several systems.
 *
 * @module
 */
import { agent, type AgentOptions, type Event, type Middleware, type RunResult, type Schema } from "@jizai/jizai";
import { scripted, type ScriptedAnswer, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { settled, weather } from "./batch.ts";
import { builtins } from "./rpc.ts";
import { lines } from "./transcript_lines.ts";

/** Returns the outcome of `situation` under the hooks of each system, by the system's name. */
export async function under(
  systems: Readonly<Record<string, Middleware>>,
  situation: (hooks: Middleware) => Promise<unknown>,
): Promise<Record<string, unknown>> {
  const outcome: Record<string, unknown> = {};
  for (const [system, hooks] of Object.entries(systems)) outcome[system] = await situation(hooks);
  return outcome;
}

/** The outcome of a run. */
export interface Ended {
  readonly model: ScriptedModel;
  readonly result: RunResult;
  readonly events: readonly Event[];
  /** The whole transcript, one line for each part. */
  readonly lines: readonly string[];
  /** The requests to the model, each as such lines. */
  readonly requests: readonly (readonly string[])[];
}

/** Runs the prompt "Hi" with an agent that knows the weather and has these hooks, and waits for its observers. */
export async function ended(
  hooks: Middleware,
  steps: readonly ScriptedAnswer[],
  { use = [], ...options }: Pick<AgentOptions<unknown, Schema>, "tools" | "use" | "limits"> = {},
): Promise<Ended> {
  const model = scripted(...steps);
  const handle = agent({ tools: [weather()], ...options, model, use: [hooks, ...use] }).run({
    prompt: "Hi",
    session: "s",
  });
  const events = await Array.fromAsync(handle.events);
  const result = await handle.result;
  await settled();
  const requests = model.requests.map(({ messages }) => lines(messages));
  return { model, result, events, lines: lines(result.messages), requests };
}

/** An observer of PicoClaw that logs the events of these kinds. */
export function observer(log: string[], ...kinds: readonly string[]): Middleware {
  const event = ({ kind }: Readonly<Record<string, unknown>>) => {
    if (kinds.includes(String(kind))) log.push(String(kind));
  };
  return builtins({ observer: { event } }, { wire: "head" });
}
