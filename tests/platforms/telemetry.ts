/**
 * A program whose spans and metrics Deno exports: an agent that asks a busy model, looks something up, is denied something, and asks another agent.
 *
 * @module
 */
import { agent, type Middleware, ModelError, tool } from "@jizai/jizai";
import { otel } from "@jizai/jizai/middleware/otel";
import { retry } from "@jizai/jizai/middleware/retry";
import { scripted } from "@jizai/jizai/model/scripted";
import * as api from "@opentelemetry/api";
import * as z from "zod";
import { asTool } from "@jizai/jizai/subagents";
import { trace } from "@jizai/jizai/trace";

const [collector = "", content] = Deno.args;

const look = tool({
  name: "look",
  description: "Looks something up",
  input: z.object({ at: z.string() }),
  execute: async ({ at }) => await (await fetch(`${collector}/${at}`)).text(),
});

const guard: Middleware = {
  name: "guard",
  approval: (ctx, next) => ctx.name === "drop" ? Promise.reject(new Error("never")) : next(),
};

const watch = otel(api, { provider: "scripts", content: content === "content" });

const helper = agent({
  name: "helper",
  model: scripted({ calls: [{ id: "look_2", name: "look", input: { at: "there" } }] }, "It is there."),
  tools: [look],
  use: [watch],
});

const boss = agent({
  name: "boss",
  model: scripted(
    { error: new ModelError("Busy", { recoverable: true, status: 529 }) },
    {
      text: "Let me look.",
      calls: [
        { id: "look_1", name: "look", input: { at: "here" } },
        { id: "drop_1", name: "drop", input: { at: "here" } },
        { id: "help_1", name: "help", input: { prompt: "Look there" } },
      ],
      usage: { input: 200, output: 20, cached: 100 },
    },
    { text: "Found it.", usage: { input: 300, output: 30 } },
  ),
  tools: [look, { ...look, name: "drop" }, asTool(helper, { name: "help", description: "Helps" })],
  use: [retry({ attempts: 2, delay: 0 }), guard, watch],
  trace,
});

const { text } = await boss.run({ prompt: "Where is it?", session: "s1" }).result;
console.log(text);
