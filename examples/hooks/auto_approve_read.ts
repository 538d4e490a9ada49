/**
 * Allows calls of `read` that would ask a person. Other tools still ask, and a denial stands.
 *
 * ```sh
 * deno run examples/hooks/auto_approve_read.ts
 * ```
 *
 * @module
 */
import { agent, allow, only, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

/** Allows every call of `read` that would ask. */
export const autoApproveRead = only("read", {
  name: "autoApproveRead",
  async approval(_ctx, next) {
    const decision = await next();
    return decision.type === "ask" ? allow() : decision;
  },
});

const path = z.object({ path: z.string() });
const read = tool({
  name: "read",
  description: "Reads a file",
  input: path,
  ask: true,
  execute: ({ path }) => `Read ${path}.`,
});
const write = tool({
  name: "write",
  description: "Writes a file",
  input: path,
  ask: true,
  execute: ({ path }) => `Wrote ${path}.`,
});

/** Reads and writes in one turn, and approves each question. Returns the questions and the final text. */
export async function run(): Promise<string[]> {
  const assistant = agent({
    model: scripted({ calls: [["read", { path: "a.txt" }], ["write", { path: "b.txt" }]] }, "Copied."),
    tools: [read, write],
    use: [autoApproveRead],
  });
  const paused = await assistant.run("Copy a.txt to b.txt").result;
  const asked = paused.questions.map(({ callId = "", questions }) => ({ callId, text: questions.join(" ") }));
  const answers = asked.map(({ callId }) => ({ callId, type: "approve" }) as const);
  const { text } = await assistant.resume({ session: paused.session, answers }).result;
  return [...asked.map(({ text }) => text), text];
}

if (import.meta.main) console.log((await run()).join("\n"));
