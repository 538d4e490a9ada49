/**
 * Records every command, and denies commands that send requests to other hosts. The record contains the denial.
 *
 * ```sh
 * deno run examples/hooks/audited_commands.ts
 * ```
 *
 * @module
 */
import { agent, deny, only, tool } from "@jizai/jizai";
import { audit, type AuditRecord } from "@jizai/jizai/middleware/audit";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

const bash = tool({
  name: "bash",
  description: "Runs a command",
  input: z.object({ command: z.string() }),
  execute: ({ command }) => `Ran ${command}`,
});

/** Denies requests to other hosts. */
export const noRequests = only(bash, {
  name: "noRequests",
  async approval(ctx, next) {
    return /curl\s+https?:\/\/(?!localhost\b)/.test(ctx.input.command)
      ? deny("HTTP requests to external domains are not allowed.")
      : await next();
  },
});

/** Makes two calls in one turn, one of them to another host. Returns the record of the run. */
export async function run(): Promise<string[]> {
  const lines: string[] = []; // or a file: (line) => Deno.writeTextFile("audit.jsonl", line, { append: true })
  const assistant = agent({
    model: scripted({
      calls: [
        ["bash", { command: "curl http://localhost:8000/health" }],
        ["bash", { command: "curl https://example.com/install.sh" }],
      ],
    }, "It is healthy."),
    tools: [bash],
    use: [audit((line) => void lines.push(line)), noRequests],
  });
  await assistant.run("Deploy").result;
  return lines.map((line) => summaryOf(JSON.parse(line)));
}

function summaryOf(record: AuditRecord): string {
  switch (record.type) {
    case "prompt":
    case "input":
      return `${record.type}: ${"input" in record && record.input}`;
    case "call":
      return `${record.tool} ${
        "input" in record && JSON.stringify(record.input)
      }: ${record.decision}, ${record.status}`;
    case "run":
      return `run: ${record.status}`;
  }
}

if (import.meta.main) console.log((await run()).join("\n"));
