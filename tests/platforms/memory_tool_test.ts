import { agent } from "@jizai/jizai";
import { memory } from "@jizai/jizai/middleware/notes/memory";
import { scripted } from "@jizai/jizai/model/scripted";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { assertEquals } from "@std/assert";
// @ts-types="../support/vendors/anthropic_memory.d.ts"
import { BetaLocalFilesystemMemoryTool } from "npm:@anthropic-ai/sdk@1.12.0/tools/memory/node";
import { type Chance, seeded, seeds, withSeed } from "../support/seeded.ts";
import { folder } from "./folder.ts";

type Command = Readonly<Record<string, unknown>> & { readonly command: string };

/** Returns a random command on a few files. */
function commandOf({ below, one }: Chance): Command {
  const path = one(["/memories/a", "/memories/b", "/memories/c.md", "/memories/x y", "/memories/.h"]);
  const text = one(["one", "two\n", "one\ntwo\none", "", "tea\ncoffee", "$&"]);
  const command = one(["view", "create", "create", "str_replace", "insert", "delete", "rename"]);
  switch (command) {
    case "view":
      return below(2) === 0
        ? { command, path: "/memories" }
        : { command, path, view_range: [below(4), one([-1, 1, 3])] };
    case "create":
      return { command, path, file_text: text };
    case "str_replace":
      return { command, path, old_str: one(["one", "tea", "e"]), new_str: text };
    case "insert":
      return { command, path, insert_line: below(5) - 1, insert_text: text };
    case "rename":
      return { command, old_path: path, new_path: one(["/memories/a", "/memories/new"]) };
    default:
      return { command, path };
  }
}

/** Returns the answers of Anthropic's own execution, in files. Its errors have other words than the specification of the tool. */
async function theirAnswers(commands: readonly Command[]): Promise<readonly string[]> {
  await using files = await folder();
  const tool = await BetaLocalFilesystemMemoryTool.init(files.path);
  const answers: string[] = [];
  for (const input of commands) {
    answers.push(await tool[input.command]!(input).then((text) => `ok ${text}`, () => "error"));
  }
  return answers;
}

async function ourAnswers(commands: readonly Command[]): Promise<readonly string[]> {
  const model = scripted({ calls: commands.map((input) => ["memory", input] as const) }, "Done.");
  const assistant = agent({ model, use: [memory({ keyValue: memoryKeyValue() })] });
  const { messages } = await assistant.run({ prompt: "Hi", owner: "ada", onError: () => {} }).result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  return results.map(({ status, parts: [part] }) =>
    status === "ok" && part?.type === "text" ? `ok ${part.text}` : status
  );
}

/** Leaves out the size of a directory: that of the entry in a file system, and of the files in ours. */
function withoutSizes(answers: readonly string[]): readonly string[] {
  return answers.map((answer) => answer.replaceAll(/^\S+\t(?=\/memories$|.*\/$)/gm, ""));
}

Deno.test("memory() answers commands as Anthropic's own execution of its memory tool does", async () => {
  for (const seed of seeds(5)) {
    await withSeed(seed, async () => {
      const chance = seeded(seed);
      const commands = Array.from({ length: 60 }, () => commandOf(chance));
      assertEquals(withoutSizes(await ourAnswers(commands)), withoutSizes(await theirAnswers(commands)));
    });
  }
});
