/**
 * One situation under the hooks of several systems.
 *
 * @module
 */
import { agent, type AgentOptions, type Event, type Middleware, type RunResult, type Schema } from "@jizai/jizai";
import { scripted, type ScriptedAnswer, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { settled, weather } from "./batch.ts";
import { builtins } from "./rpc.ts";
import { lines } from "./transcript_lines.ts";

/** What `situation` comes to under the hooks of each system, by its name. */
export async function under(
  systems: Readonly<Record<string, Middleware>>,
  situation: (hooks: Middleware) => Promise<unknown>,
): Promise<Record<string, unknown>> {
  const came: Record<string, unknown> = {};
  for (const [system, hooks] of Object.entries(systems)) came[system] = await situation(hooks);
  return came;
}

/** What a run came to. */
export interface Ended {
  readonly model: ScriptedModel;
  readonly result: RunResult;
  readonly events: readonly Event[];
  /** The whole transcript, a line for each thing said. */
  readonly lines: readonly string[];
  /** What the model was asked, each request as such lines. */
  readonly requests: readonly (readonly string[])[];
}

/** What comes of "Hi" where an agent that knows the weather has these hooks, once observers have heard of it. */
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

/** An observer of PicoClaw that writes down which of these events it is told of. */
export function observer(log: string[], ...kinds: readonly string[]): Middleware {
  const event = ({ kind }: Readonly<Record<string, unknown>>) => {
    if (kinds.includes(String(kind))) log.push(String(kind));
  };
  return builtins({ observer: { event } }, { wire: "head" });
}
