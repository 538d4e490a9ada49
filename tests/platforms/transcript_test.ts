import { agent, compacted, memory, type Middleware, serve, text, user } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { transcript } from "@jizai/jizai/middleware/transcript";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals, assertThrows } from "@std/assert";
import { hooks, shell, warnings } from "../support/hooked.ts";
import { post } from "../support/requests.ts";
import { folder } from "./folder.ts";
import { asTool } from "@jizai/jizai/subagents";

interface Line {
  readonly type: string;
  readonly uuid: string;
  readonly parentUuid: string | null;
  readonly sessionId: string;
  readonly isMeta?: boolean;
  readonly message: { readonly role: string; readonly content: unknown };
}

/** Returns the lines of a file, and checks that each has a later time than the one before it. */
async function linesOf(path: string): Promise<Line[]> {
  const lines: Line[] = (await Deno.readTextFile(path)).split("\n").slice(0, -1).map((line) => JSON.parse(line));
  const before = [null, ...lines.map(({ uuid }) => uuid)].slice(0, lines.length);
  assertEquals(lines.map(({ parentUuid }) => parentUuid), before);
  return lines;
}

const contentsOf = (lines: readonly Line[]) => lines.map(({ type, message: { content } }) => [type, content]);

Deno.test("transcript() obeys the laws of middleware", async () => {
  await using disk = await folder();
  await testMiddleware(() => transcript({ dir: disk.path }));
});

Deno.test("no session id leads out of the directory", async () => {
  await using disk = await folder();
  const child = agent({ name: "child", description: "Helps", model: scripted("Done.") });
  const assistant = agent({
    model: scripted({ calls: [["child", { prompt: "Help" }]] }, "Done."),
    tools: [asTool(child)],
    use: [transcript({ dir: `${disk.path}/deep` })],
  });
  await assistant.run({ session: "..", prompt: "Hi" }).result;
  assertEquals((await Array.fromAsync(Deno.readDir(disk.path))).map(({ name }) => name), ["deep"]);
  const names = (await Array.fromAsync(Deno.readDir(`${disk.path}/deep`))).map(({ name }) => name);
  assertEquals(names.toSorted(), ["%2E%2E", "%2E%2E.jsonl"]);
});

Deno.test("each session has a file with a line per message, over all of its runs", async () => {
  await using disk = await folder();
  const image = { type: "media", mediaType: "image/png", data: "AA==" } as const;
  const assistant = agent({
    model: scripted({ reasoning: "Hm.", text: "Look.", calls: [["Bash", { command: "ls" }]] }, "One.", "Two."),
    tools: [shell({ execute: () => text([{ type: "text", text: "files" }, image]) })],
    use: [transcript({ dir: `${disk.path}/deep` })],
  });
  await assistant.run({ session: "a/b", prompt: "Hi" }).result;
  await assistant.run({ session: "a/b", prompt: "Again" }).result;
  const lines = await linesOf(`${disk.path}/deep/a%2Fb.jsonl`);
  assertEquals(contentsOf(lines), [
    ["user", "Hi"],
    ["assistant", [
      { type: "thinking", thinking: "Hm." },
      { type: "text", text: "Look." },
      { type: "tool_use", id: "call_1", name: "Bash", input: { command: "ls" } },
    ]],
    ["user", [{
      type: "tool_result",
      tool_use_id: "call_1",
      content: [
        { type: "text", text: "files" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } },
      ],
    }]],
    ["assistant", [{ type: "text", text: "One." }]],
    ["user", "Again"],
    ["assistant", [{ type: "text", text: "Two." }]],
  ]);
  assertEquals(lines.every(({ sessionId }) => sessionId === "a/b"), true);
});

Deno.test("hooks receive the path, and find the earlier messages in the file", async () => {
  await using disk = await folder();
  const found: unknown[] = [];
  const reads = hooks(async ({ hook_event_name, transcript_path }) => {
    found.push([hook_event_name, transcript_path, contentsOf(await linesOf(transcript_path)).at(-1)]);
  });
  const config = { SessionStart: reads, PreToolUse: reads, Stop: reads };
  const model = scripted({ calls: [["Bash", { command: "ls" }]] }, "Done.");
  const use = [transcript({ dir: disk.path }), claude_hooks(config)];
  await agent({ model, tools: [shell()], use }).run({ session: "s", prompt: "Hi" }).result;
  const path = `${Deno.cwd()}/${disk.path}/s.jsonl`;
  assertEquals(found, [
    ["SessionStart", path, undefined],
    ["PreToolUse", path, ["user", "Hi"]],
    ["Stop", path, ["assistant", [{ type: "text", text: "Done." }]]],
  ]);
});

Deno.test("a subagent has its own file", async () => {
  await using disk = await folder();
  const paths: unknown[] = [];
  const receive = hooks((input) => {
    if (input.hook_event_name === "SubagentStop") {
      paths.push(input.transcript_path, input.agent_transcript_path, input.agent_id);
    }
  });
  const child = agent({ name: "child", model: scripted("Helped.") });
  const model = scripted({ calls: [["child", { prompt: "Help" }]] }, "Done.");
  const use = [transcript({ dir: disk.path }), claude_hooks({ SubagentStop: receive })];
  await agent({ model, tools: [asTool(child)], use }).run({ session: "s", prompt: "Hi" }).result;
  const [main, own, id] = paths;
  const here = `${Deno.cwd()}/${disk.path}`;
  assertEquals([main, own], [`${here}/s.jsonl`, `${here}/s/subagents/agent-${id}.jsonl`]);
  assertEquals(contentsOf(await linesOf(String(own))), [["user", "Help"], ["assistant", [{
    type: "text",
    text: "Helped.",
  }]]]);
});

Deno.test("a compaction appends its messages, and written lines do not change", async () => {
  await using disk = await folder();
  const short: Middleware = {
    name: "short",
    compact: ({ transcript }) => Promise.resolve(compacted([user("In short.", "summary"), ...transcript.slice(-1)])),
  };
  const assistant = agent({
    model: scripted("One.", "Two."),
    use: [transcript({ dir: disk.path }), short, compaction({ summarize: false })],
    limits: { context: 30 },
  });
  await assistant.run({ session: "s", prompt: "Hi" }).result;
  await assistant.run({ session: "s", prompt: "x".repeat(100) }).result;
  const lines = await linesOf(`${disk.path}/s.jsonl`);
  assertEquals(lines.map(({ message: { content }, isMeta = false }) => [content, isMeta]), [
    ["Hi", false],
    [[{ type: "text", text: "One." }], false],
    ["x".repeat(100), false],
    ["In short.", true],
    [[{ type: "text", text: "Two." }], false],
  ]);
});

Deno.test("a session that goes back to its first prompt is written again, and its last lines lead to the conversation as it is", async () => {
  await using disk = await folder();
  const assistant = agent({ model: scripted("One.", "Two.", "Three."), use: [transcript({ dir: disk.path })] });
  const app = serve(assistant, { store: memory(), wires: [aiSdkUi()] });
  const chatMessage = (id: string, role: string, text: string) => ({ id, role, parts: [{ type: "text", text }] });
  const [first, answer, second] = [
    chatMessage("m1", "user", "A"),
    chatMessage("m2", "assistant", "One."),
    chatMessage("m3", "user", "B"),
  ];
  const chat = async (body: object) => await (await post(app, "/chat", { id: "s", ...body })).text();
  await chat({ messages: [first], trigger: "submit-message" });
  await chat({ messages: [first, answer, second], trigger: "submit-message" });
  await chat({ messages: [first], trigger: "regenerate-message", messageId: "m2" });
  const text = await Deno.readTextFile(`${disk.path}/s.jsonl`);
  const lines: Line[] = text.trim().split("\n").map((line) => JSON.parse(line));
  assertEquals(
    lines.map(({ parentUuid, message: { content } }) => {
      return [content, lines.findIndex(({ uuid }) => uuid === parentUuid)];
    }),
    [
      ["A", -1],
      [[{ type: "text", text: "One." }], 0],
      ["B", 1],
      [[{ type: "text", text: "Two." }], 2],
      ["A", -1],
      [[{ type: "text", text: "Three." }], 4],
    ],
  );
});

Deno.test("transcript() must stand before compaction, which does not call next() at compact", () => {
  assertThrows(
    () => agent({ model: scripted(), use: [compaction(), transcript({ dir: "." })] }),
    TypeError,
    'Cannot use "compaction" before "transcript"',
  );
});

Deno.test("a failed write emits a warning, and the run continues", async () => {
  await using disk = await folder();
  await Deno.writeTextFile(`${disk.path}/file`, "");
  const run = agent({ model: scripted("Done."), use: [transcript({ dir: `${disk.path}/file` })] }).run("Hi");
  const events = await Array.fromAsync(run.events);
  assertEquals((await run.result).text, "Done.");
  assertEquals(new Set(warnings(events)), new Set(["The transcript is incomplete: it could not be written."]));
});
