/**
 * Answers what reading asks, so that nobody is bothered with it. Whatever else asks still waits for a person, and a denial stays one.
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

/** Allows every call of `read` that would have asked. */
export const autoApproveRead = only("read", {
  name: "autoApproveRead",
  async approval(_ctx, next) {
    const beneath = await next();
    return beneath.type === "ask" ? allow() : beneath;
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

/** Reads and writes at once; gives what a person is asked, and what becomes of it when they say yes. */
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
