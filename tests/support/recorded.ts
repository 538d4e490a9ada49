/**
 * A run that reasons, makes three parallel calls, asks a person twice, and answers; and the frames that its client receives.
 *
 * @module
 */
import { type Agent, agent, type PersonAnswer, serve, tool } from "@jizai/jizai";
import type { Frame } from "@jizai/jizai/client";
import { scripted, type ScriptedModel } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { eventsOf, first, post } from "./requests.ts";

/** A person's answers to the two questions. */
export const answers: readonly (readonly PersonAnswer[])[] = [
  [{ callId: "drop_1", type: "approve" }],
  [{ callId: "drop_2", type: "deny", reason: "自在鉤 — no." }],
];

/** Creates an agent for one such run, its model, and the effects of its tools. */
export function asking(): {
  readonly assistant: Agent<unknown, string>;
  readonly model: ScriptedModel;
  readonly done: readonly string[];
} {
  const done: string[] = [];
  const input = z.object({ at: z.string() });
  const does = (what: string) => ({ at }: { readonly at: string }) => {
    done.push(at);
    return `${what} ${at}.`;
  };
  const look = tool({ name: "look", description: "Looks", input, execute: does("Saw") });
  const drop = tool({ name: "drop", description: "Drops", input, ask: true, execute: does("Dropped") });
  const call = (id: string) => ({ id, name: id.split("_")[0] ?? "", input: { at: `${id} 🔥\u2028` } });
  const model = scripted(
    { reasoning: ["H", "m."], text: ["Let me ", "look."], calls: [call("look_1"), call("drop_1"), call("look_2")] },
    { text: "Äh.", calls: [call("drop_2")] },
    { text: ["Do", "ne", "."] },
  );
  return { assistant: agent({ model, tools: [look, drop] }), model, done };
}

/** Records such a run: the frames before each answer, and those to its end. */
export async function recorded(): Promise<readonly (readonly Frame[])[]> {
  const app = serve(asking().assistant);
  const legs = [await eventsOf(post(app, "/runs", { prompt: "Go" }))];
  const { session } = first("run.started", legs.flat());
  for (const given of answers) legs.push(await eventsOf(post(app, `/sessions/${session}/answers`, { answers: given })));
  return legs.map((events) => events.map(({ id, ...event }) => ({ id, event })));
}
