/**
 * A run as its client would hear it, recorded once: it thinks, calls three tools at once, asks a person twice, and answers.
 *
 * @module
 */
import { agent, type PersonAnswer, serve, tool } from "@jizai/jizai";
import type { Frame } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { eventsOf, first, post } from "./requests.ts";

/** A person's answers to the two questions. */
export const answers: readonly (readonly PersonAnswer[])[] = [
  [{ callId: "drop_1", type: "approve" }],
  [{ callId: "drop_2", type: "deny", reason: "自在鉤 — no." }],
];

/** Records it: what it says before each answer, and to its end. */
export async function recorded(): Promise<readonly (readonly Frame[])[]> {
  const input = z.object({ at: z.string() });
  const look = tool({ name: "look", description: "Looks", input, execute: ({ at }) => `Saw ${at}.` });
  const drop = tool({ name: "drop", description: "Drops", input, ask: true, execute: ({ at }) => `Dropped ${at}.` });
  const call = (id: string) => ({ id, name: id.split("_")[0] ?? "", input: { at: `${id} 🔥\u2028` } });
  const model = scripted(
    { reasoning: ["H", "m."], text: ["Let me ", "look."], calls: [call("look_1"), call("drop_1"), call("look_2")] },
    { text: "Äh.", calls: [call("drop_2")] },
    { text: ["Do", "ne", "."] },
  );
  const app = serve(agent({ model, tools: [look, drop] }));
  const legs = [await eventsOf(post(app, "/runs", { prompt: "Go" }))];
  const { session } = first("run.started", legs.flat());
  for (const given of answers) legs.push(await eventsOf(post(app, `/sessions/${session}/answers`, { answers: given })));
  return legs.map((events) => events.map(({ id, ...event }) => ({ id, event })));
}
