/**
 * A program that runs an agent on a SQLite file, and dies in its tool: `step_program.ts FOLDER PLACE`. Started again, it continues the run.
 *
 * @module
 */
import { agent, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";

const [folder = "", place = ""] = Deno.args;
const database = new DatabaseSync(`${folder}/sessions.db`);
migrate(database);
const store = sqliteStore(database);

const dieAt = (here: string) => here === place && Deno.kill(Deno.pid, "SIGKILL");

/** Writes an effect with its key to a file, which outlives the process. */
function effect(name: string, key: string): string {
  Deno.writeTextFileSync(`${folder}/effects`, `${name} ${key.split(":").slice(1).join(":")}\n`, { append: true });
  dieAt(`in ${name}`);
  return `id of ${name}`;
}

const order = tool({
  name: "order",
  description: "Orders",
  input: z.object({}),
  async execute(_, { step }) {
    const charged = await step("charge", ({ key }) => effect("charge", key));
    dieAt("after charge");
    const mailed = await step("mail", ({ key }) => effect("mail", key));
    return `${charged}, ${mailed}`;
  },
});

const isBegun = await store.load("s") !== undefined;
const made = agent({
  model: isBegun ? scripted("Done.") : scripted({ calls: [["order", {}]] }, "Done."),
  tools: [order],
});
const { result } = isBegun
  ? made.resume({ session: "s", store, answers: [], lost: () => true })
  : made.run({ prompt: "Go", session: "s", store });
const { messages } = await result;
console.log(JSON.stringify(messages.flatMap((message) => message.role === "tool" ? message.results : [])));
