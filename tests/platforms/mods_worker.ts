/**
 * A Worker whose agent runs mods.
 *
 * @module
 */
import { agent, type Message, tool } from "@jizai/jizai";
import { mods } from "@jizai/jizai/middleware/mods";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { caught, hook, mod, throwing } from "../support/modded.ts";

/** Every Worker of these tests has a Durable Object. */
export class Nothing {}

const bash = tool({
  name: "Bash",
  description: "Runs a command",
  input: z.object({ command: z.string() }),
  execute: ({ command }) => `ran ${command}`,
});

const all = [
  caught("tool.call", throwing(), (_$, e, next) => /rm/.test(e.command) ? { deny: "No." } : next(e), { name: "guard" }),
  hook("tool.check", () => new Promise(() => {}), { name: "late" }),
  mod((on) => {
    on("session.start", async ($, e, next) => {
      await $.store.set("started", await $.clock.now() > 0);
      return next(e);
    });
    on("turn.step", async function* ($, e, next) {
      for await (const chunk of next(e)) {
        yield chunk.kind === "text" ? { ...chunk, text: `${chunk.text} ${await $.store.get("started")}` } : chunk;
      }
    });
  }, { name: "steps" }),
];

export default {
  /** Runs an agent whose mods deny, fail, are late and stream. Returns the texts of its transcript. */
  async fetch(): Promise<Response> {
    const calls = [["Bash", { command: "rm x" }], ["Bash", { command: "ls" }]] as const;
    const model = scripted({ calls }, "Done.");
    const { messages } = await agent({ model, tools: [bash], use: [mods(all)] }).run("Hi").result;
    const texts = messages.flatMap((message: Message) =>
      message.role === "tool" ? message.results.map(({ parts }) => parts) : [message.parts]
    );
    return Response.json(
      texts.map((parts) => parts.map((part) => part.type === "text" ? part.text : part.type).join()),
    );
  },
};
