/**
 * The agent whose sessions are recorded in `recorded_journals.sql`.
 *
 * @module
 */
import { agent, type Middleware, type Model, tool } from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";
import * as z from "zod";

/** A middleware that asks "Which one?" about a message of "Choose" before it is accepted, or "Sure?" about one of "Check" once it is. */
const asking: Middleware = {
  name: "asking",
  input: ({ messages, run }, next) => {
    if (JSON.stringify(messages).includes("Choose") && run.answers.length === 0) throw run.pause("Which one?");
    return next();
  },
  prompt: ({ prompt, run }, next) => {
    if (JSON.stringify(prompt).includes("Check") && run.answers.length === 0) throw run.pause("Sure?");
    return next();
  },
};

/** Creates the agent. Its tool `wait` calls `started`, and waits for `gate`. */
export function recordedAssistant(model: Model, { gate = Promise.resolve(), started = () => {} } = {}) {
  const input = z.object({ of: z.string() });
  return agent({
    model,
    tools: [
      tool({ name: "look", description: "Looks", input, execute: ({ of }) => `Seen ${of}` }),
      tool({ name: "pay", description: "Pays", input, ask: true, execute: ({ of }) => `Paid ${of}` }),
      tool({
        name: "wait",
        description: "Waits",
        input,
        idempotent: true,
        execute: async ({ of }) => {
          started();
          await gate;
          return `Waited for ${of}`;
        },
      }),
    ],
    use: [compaction({ summarize: false }), asking],
  });
}
