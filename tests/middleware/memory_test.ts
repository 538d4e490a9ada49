import { agent, type ToolDefinition } from "@jizai/jizai";
import { notes } from "@jizai/jizai/middleware/notes";
import { memory, type MemoryOptions } from "@jizai/jizai/middleware/notes/memory";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { openai } from "@jizai/jizai/model/openai";
import { scripted } from "@jizai/jizai/model/scripted";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { messagesApi } from "../support/providers/anthropic.ts";
import { chatCompletions } from "../support/providers/openai.ts";
import { recordRequests, sse } from "../support/providers/sse.ts";
import { lines } from "../support/transcript_lines.ts";

type Command = Readonly<Record<string, unknown>>;

const view = (path = "/memories", ...view_range: readonly number[]): Command => ({
  command: "view",
  path,
  ...(view_range.length > 0 && { view_range }),
});
const create = (path: string, file_text = ""): Command => ({ command: "create", path, file_text });
const replace = (path: string, old_str: string, new_str?: string): Command => ({
  command: "str_replace",
  path,
  old_str,
  ...(new_str !== undefined && { new_str }),
});
const insert = (path: string, insert_line: number, insert_text: string): Command => ({
  command: "insert",
  path,
  insert_line,
  insert_text,
});
const remove = (path: string): Command => ({ command: "delete", path });
const rename = (old_path: string, new_path: string): Command => ({ command: "rename", old_path, new_path });

/** Creates a function that runs commands in a new session of an owner, and returns their answers. */
function memorySession(options: Partial<MemoryOptions> = {}) {
  const keyValue = options.keyValue ?? memoryKeyValue();
  return async (owner: string | undefined, ...commands: readonly Command[]) => {
    const model = scripted(...commands.map((command) => ({ calls: [["memory", command] as const] })), "Done.");
    const assistant = agent({ model, use: [memory({ keyValue, ...options })] });
    const { messages } = await assistant.run({ prompt: "Hi", ...(owner !== undefined && { owner }) }).result;
    return lines(messages.filter(({ role }) => role === "tool"));
  };
}

const header = (path: string) =>
  `ok Here're the files and directories up to 2 levels deep in ${path}, excluding hidden items and node_modules:`;

Deno.test("memory() obeys the laws of middleware", async () => {
  await testMiddleware(() => memory({ keyValue: memoryKeyValue(), owner: ({ run }) => run.id }), {
    calls: [["memory", create("/memories/a")], ["memory", view()]],
  });
});

Deno.test("memory() keeps files across sessions, for their owner only", async () => {
  const session = memorySession();
  assertEquals(await session("ada", view(), create("/memories/drinks.md", "# Drinks\nPrefers tea\n")), [
    `${header("/memories")}\n0B\t/memories`,
    "ok File created successfully at: /memories/drinks.md",
  ]);
  assertEquals(await session("ada", view(), view("/memories/drinks.md")), [
    `${header("/memories")}\n21B\t/memories\n21B\t/memories/drinks.md`,
    "ok Here's the content of /memories/drinks.md with line numbers:\n     1\t# Drinks\n     2\tPrefers tea\n     3",
  ]);
  assertEquals(await session("bob", view(), view("/memories/drinks.md")), [
    `${header("/memories")}\n0B\t/memories`,
    "error The path /memories/drinks.md does not exist. Please provide a valid path.",
  ]);
});

Deno.test("memory() lists two levels of a directory with their sizes, and no hidden files", async () => {
  const session = memorySession();
  const paths = ["b/c/d/e.md", "b/x.md", "a.md", ".hidden", "b/.git/y", "node_modules/z", "b/c/f.md"];
  await session("ada", ...paths.map((path) => create(`/memories/${path}`, "x".repeat(600))));
  assertEquals(await session("ada", view(), view("/memories/"), view("/memories/b"), view("/memories/b/c/d")), [
    [header("/memories"), "4.1K\t/memories", "600B\t/memories/a.md", "2.3K\t/memories/b/"]
      .concat("1.2K\t/memories/b/c/", "600B\t/memories/b/x.md").join("\n"),
    [header("/memories"), "4.1K\t/memories", "600B\t/memories/a.md", "2.3K\t/memories/b/"]
      .concat("1.2K\t/memories/b/c/", "600B\t/memories/b/x.md").join("\n"),
    [header("/memories/b"), "2.3K\t/memories/b", "1.2K\t/memories/b/c/", "600B\t/memories/b/c/d/"]
      .concat("600B\t/memories/b/c/f.md", "600B\t/memories/b/x.md").join("\n"),
    [header("/memories/b/c/d"), "600B\t/memories/b/c/d", "600B\t/memories/b/c/d/e.md"].join("\n"),
  ]);
});

Deno.test("memory() shows a range of the lines of a file", async () => {
  const path = "/memories/a.md";
  const session = memorySession();
  const content = (...numbered: readonly string[]) =>
    [`ok Here's the content of ${path} with line numbers:`, ...numbered].join("\n");
  await session("ada", create(path, "one\ntwo\nthree"));
  assertEquals(await session("ada", view(path, 2, 2), view(path, 2, -1), view(path, 0, 1), view(path, 9, 9)), [
    content("     2\ttwo"),
    content("     2\ttwo", "     3\tthree"),
    content("     1\tone"),
    content(),
  ]);
});

Deno.test("memory() replaces a text that occurs once", async () => {
  const path = "/memories/a.md";
  const session = memorySession();
  await session("ada", create(path, "1\n2\nblue $& blue\n4\n5\n6"));
  assertEquals(
    await session(
      "ada",
      replace(path, "blue $", "red\n$'"),
      replace(path, "& blue\n4", ""),
      replace(path, "\n6"),
      view(path),
    ),
    [
      "ok The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     1\t1\n     2\t2\n     3\tred\n     4\t$'& blue\n     5\t4\n     6\t5",
      "ok The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     2\t2\n     3\tred\n     4\t$'\n     5\t5\n     6\t6",
      "ok The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     3\tred\n     4\t$'\n     5\t5",
      `ok Here's the content of ${path} with line numbers:\n     1\t1\n     2\t2\n     3\tred\n     4\t$'\n     5\t5`,
    ],
  );
  assertEquals(
    await session(
      "ada",
      replace(path, "green", ""),
      replace(path, "\n"),
      replace("/memories/b", "x"),
      replace("/memories", "x"),
    ),
    [
      `error No replacement was performed, old_str \`green\` did not appear verbatim in ${path}.`,
      `error No replacement was performed. Multiple occurrences of old_str \`\n\` in lines: 1, 2, 3, 4. Please ensure it is unique`,
      "error Error: The path /memories/b does not exist. Please provide a valid path.",
      "error Error: The path /memories does not exist. Please provide a valid path.",
    ],
  );
});

Deno.test("memory() inserts lines after a line, and refuses a line that the file does not have", async () => {
  const path = "/memories/todo.txt";
  const session = memorySession();
  const answers = await session(
    "ada",
    create(path, "b"),
    insert(path, 0, "a\n"),
    insert(path, 2, "c\nd"),
    view(path),
    insert(path, 5, "x"),
    insert(path, -1, "x"),
    insert(path, 0.5, "x"),
    insert("/memories/none", 0, "x"),
  );
  const invalid = (line: number) =>
    `error Error: Invalid \`insert_line\` parameter: ${line}. It should be within the range of lines of the file: [0, 4]`;
  assertEquals(answers.slice(1), [
    `ok The file ${path} has been edited.`,
    `ok The file ${path} has been edited.`,
    `ok Here's the content of ${path} with line numbers:\n     1\ta\n     2\tb\n     3\tc\n     4\td`,
    invalid(5),
    invalid(-1),
    invalid(0.5),
    "error Error: The path /memories/none does not exist",
  ]);
});

Deno.test("memory() deletes and renames files and directories, and overwrites none", async () => {
  const session = memorySession();
  const answers = await session(
    "ada",
    create("/memories/a/1", "one"),
    create("/memories/a/2"),
    create("/memories/b"),
    create("/memories/b"),
    create("/memories/a"),
    create("/memories/b/c"),
    rename("/memories/a", "/memories/b"),
    rename("/memories/a", "/memories/b/c"),
    rename("/memories/none", "/memories/c"),
    rename("/memories", "/memories/c"),
    rename("/memories/a", "/memories"),
    rename("/memories/a", "/memories/c"),
    view("/memories/c/1"),
    remove("/memories/c"),
    remove("/memories/c"),
    remove("/memories"),
    view(),
  );
  assertEquals(answers.slice(3), [
    "error Error: File /memories/b already exists",
    "error Error: File /memories/a already exists",
    "error Error: The path /memories/b is a file, not a directory",
    "error Error: The destination /memories/b already exists",
    "error Error: The path /memories/b is a file, not a directory",
    "error Error: The path /memories/none does not exist",
    "error Error: The directory /memories itself cannot be renamed.",
    "error Error: The destination /memories already exists",
    "ok Successfully renamed /memories/a to /memories/c",
    "ok Here's the content of /memories/c/1 with line numbers:\n     1\tone",
    "ok Successfully deleted /memories/c",
    "error Error: The path /memories/c does not exist",
    "error Error: The directory /memories itself cannot be deleted.",
    `${header("/memories")}\n0B\t/memories\n0B\t/memories/b`,
  ]);
});

Deno.test("memory() refuses every path that is not one below /memories in one spelling", async () => {
  const session = memorySession();
  const paths = ["/memories/../etc/passwd", "/memories/a/../../b", "/etc/passwd", "memories/a", "/memoriesx/a", ""]
    .concat("/memories//a", "/memories/./a", "/memories/a/", "/memories/%2e%2e/a", "/memories/..%2Fa", "/memories/%5ca")
    .concat("/memories\\..\\a", "/memories/a\\b", "/memories/a\nb", "/memories/a\0", "/MEMORIES/a", "..")
    .concat(`/memories/${"a".repeat(300)}`, "/memories/\ud800");
  for (const path of paths) {
    const commands = [
      create(path, "x"),
      view(path),
      remove(path),
      rename(path, "/memories/b"),
      rename("/memories/a", path),
    ];
    const answers = await session("ada", create("/memories/a"), ...commands, remove("/memories/a"));
    const refused = answers.slice(1, -1).map((answer) => answer.includes("/memories or a path below it"));
    assertEquals([path, refused], [path, commands.map(() => true)]);
  }
  assertEquals(await session("ada", view()), [`${header("/memories")}\n0B\t/memories`]);
});

Deno.test("memory() refuses inputs that are no command", async () => {
  const session = memorySession();
  const inputs: readonly Command[] = [{}, { command: "format", path: "/memories" }, { command: "toString" }]
    .concat([{ command: "view" } as never, { command: "create", path: "/memories/a" } as never]);
  const more = [replace("/memories/a", ""), { ...view("/memories"), view_range: [1] }, { command: "constructor" }];
  const answers = await session("ada", ...inputs, ...more);
  assertEquals(answers.map((answer) => answer.split(" ")[0]), Array(8).fill("error"));
});

Deno.test("memory() limits the number and the length of files", async () => {
  const session = memorySession({ max: 2, maxLength: 4 });
  const answers = await session(
    "ada",
    create("/memories/a", "12345"),
    create("/memories/a", "1234"),
    insert("/memories/a", 0, "5"),
    replace("/memories/a", "1", "11"),
    create("/memories/b"),
    create("/memories/c"),
    remove("/memories/a"),
    create("/memories/c"),
  );
  const tooLong = (length: number) =>
    `error Error: File /memories/a would have ${length} characters, and may have 4. Shorten it, or keep a part of it in another file.`;
  assertEquals(answers, [
    tooLong(5),
    "ok File created successfully at: /memories/a",
    tooLong(6),
    tooLong(5),
    "ok File created successfully at: /memories/b",
    "error Error: File /memories/c cannot be created: there are 2 files. Delete one first.",
    "ok Successfully deleted /memories/a",
    "ok File created successfully at: /memories/c",
  ]);
  for (const sizes of [{ max: 0 }, { maxLength: 0.5 }]) {
    assertThrows(() => memory({ keyValue: memoryKeyValue(), ...sizes }), RangeError, "a whole number of 1 or more");
  }
});

Deno.test("memory() reads and writes nothing without an owner", async () => {
  const missing = "error Cannot use notes: the session has no owner.";
  assertEquals(await memorySession()(undefined, create("/memories/a"), view()), [missing, missing]);
  assertEquals(await memorySession({ owner: () => "" })("ada", view()), [missing]);
  assertEquals(await memorySession({ owner: () => "me" })(undefined, create("/memories/a")), [
    "ok File created successfully at: /memories/a",
  ]);
});

Deno.test("guards see each command of memory(), and one that they deny changes nothing", async () => {
  const keyValue = memoryKeyValue();
  const rule = { tool: "memory", when: (input: unknown) => Object(input).command !== "view", why: "Read only." };
  const model = scripted({ calls: [["memory", create("/memories/a")], ["memory", view()]] }, "Done.");
  const assistant = agent({ model, use: [permissions({ deny: [rule] }), memory({ keyValue })] });
  const { messages } = await assistant.run({ prompt: "Hi", owner: "ada" }).result;
  assertEquals(lines(messages.slice(2, 3)), ["denied Read only.", `${header("/memories")}\n0B\t/memories`]);
});

Deno.test("memory() and notes() show each other's notes", async () => {
  const keyValue = memoryKeyValue();
  const calls = [
    ["write_note", { text: "Likes tea" }],
    ["memory", create("/memories/a.md", "one\ntwo")],
    ["memory", replace("/memories/note_1.txt", "tea", "coffee")],
    ["memory", view("/memories/note_1.txt")],
    ["read_notes", {}],
  ] as const;
  const model = scripted(...calls.map((call) => ({ calls: [call] })), "Done.");
  const assistant = agent({ model, use: [notes({ keyValue }), memory({ keyValue })] });
  const { messages } = await assistant.run({ prompt: "Hi", owner: "ada" }).result;
  assertEquals(lines(messages.filter(({ role }) => role === "tool")).slice(3), [
    "ok Here's the content of /memories/note_1.txt with line numbers:\n     1\tLikes coffee",
    "ok 1. /memories/note_1.txt\nLikes coffee\n2. /memories/a.md\none\ntwo",
  ]);
});

Deno.test("memory() keeps all changes of a batch, and of sessions at the same time", async () => {
  const path = "/memories/log";
  const keyValue = memoryKeyValue();
  const append = (text: string) => ["memory", insert(path, 0, text)] as const;
  const calls = [["memory", create(path)] as const, append("1"), append("2"), append("3")];
  const use = [memory({ keyValue })];
  await agent({ model: scripted({ calls }, "Done."), use }).run({ prompt: "Hi", owner: "ada" }).result;
  await Promise.all(
    ["4", "5", "6"].map((text) =>
      agent({ model: scripted({ calls: [append(text)] }, "Done."), use }).run({ prompt: "Hi", owner: "ada" }).result
    ),
  );
  const [answer = ""] = await memorySession({ keyValue })("ada", view(path));
  assertEquals(answer.split("\n").slice(1).map((line) => line.slice(7)).toSorted(), ["", ..."123456"]);
});

Deno.test("memory() asks the model to try again while another process changes the files, for a minute at most", async () => {
  using time = new FakeTime();
  const values = memoryKeyValue();
  const keyValue = { ...values, delete: () => Promise.resolve() }; // a process that dies before it releases the lock
  await memorySession({ keyValue })("ada", create("/memories/a"));
  const session = memorySession({ keyValue: values });
  assertEquals(await session("ada", create("/memories/b"), view("/memories/a")), [
    "error Cannot change the notes: another conversation is changing them. Try again.",
    "ok Here's the content of /memories/a with line numbers:\n     1",
  ]);
  time.tick(60_000);
  assertEquals(await session("ada", create("/memories/b")), ["ok File created successfully at: /memories/b"]);
});

Deno.test("memory() forgets files that expire, and keeps those that were written again", async () => {
  using time = new FakeTime();
  const session = memorySession({ expireIn: 1_000 });
  await session("ada", create("/memories/a", "a"), create("/memories/b"));
  time.tick(600);
  await session("ada", replace("/memories/a", "a", "b"));
  time.tick(600);
  assertEquals(await session("ada", view()), [`${header("/memories")}\n1B\t/memories\n1B\t/memories/a`]);
});

Deno.test("memory() is Anthropic's memory tool for Claude, and a tool with a schema for every other model", async () => {
  const memoryOf = async (create: typeof anthropic | typeof openai, stream: string, model: string) => {
    const { sent, fetch } = recordRequests(stream);
    const use = [memory({ keyValue: memoryKeyValue() })];
    await agent({ model: create({ model, fetch }), use }).run({ prompt: "Hi", owner: "ada" }).result;
    return sent[0]?.body.tools;
  };
  const own = [{ type: "memory_20250818", name: "memory" }];
  const messages = messagesApi.textStream("Done.");
  for (
    const model of ["claude-opus-4-1", "claude-sonnet-5-5", "anthropic/claude-haiku-4.5", "us.anthropic.claude-fable-5"]
  ) {
    assertEquals([model, await memoryOf(anthropic, messages, model)], [model, own]);
  }
  for (const model of ["claude-3-opus", "glm-5", "deepseek-chat"]) {
    const [{ name, input_schema: { required } }] = await memoryOf(anthropic, messages, model);
    assertEquals([model, name, required], [model, "memory", ["command"]]);
  }
  const [{ function: { name } }] = await memoryOf(openai, chatCompletions.textStream("Done."), "claude-opus-5");
  assertEquals(name, "memory");
});

Deno.test("anthropic() defers a tool that Claude knows like any other", async () => {
  const { sent, fetch } = recordRequests(messagesApi.textStream("Done."));
  const definition: ToolDefinition = {
    name: "memory",
    description: "",
    schema: { type: "object" },
    deferred: true,
    apis: { anthropic: { type: "memory_20250818", name: "memory" } },
  };
  const model = anthropic({ model: "claude-sonnet-5-5", fetch });
  await Array.fromAsync(model.stream(
    { model, instructions: "", messages: [], tools: [definition], options: {} },
    { signal: new AbortController().signal },
  ));
  assertEquals(sent[0]?.body.tools.at(-1), { type: "memory_20250818", name: "memory", defer_loading: true });
});

Deno.test("Claude's calls of its memory tool are run, and their answers sent back", async () => {
  const call = (index: number, input: Command) => [
    {
      type: "content_block_start",
      index,
      content_block: { type: "tool_use", id: `toolu_${index}`, name: "memory", input: {} },
    },
    { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: JSON.stringify(input) } },
    { type: "content_block_stop", index },
  ];
  const calls = sse([
    ...call(0, view()),
    ...call(1, view("/memories/a.md")),
    { type: "message_delta", delta: { stop_reason: "tool_use" } },
    { type: "message_stop" },
  ]);
  const { sent, fetch } = recordRequests(calls, messagesApi.textStream("Done."));
  const model = anthropic({ model: "claude-sonnet-5-5", fetch, cache: false });
  await agent({ model, use: [memory({ keyValue: memoryKeyValue() })] }).run({ prompt: "Hi", owner: "ada" }).result;
  assertEquals(sent[1]?.body.messages[2].content, [
    {
      type: "tool_result",
      tool_use_id: "toolu_0",
      content: [{ type: "text", text: `${header("/memories").slice(3)}\n0B\t/memories` }],
    },
    {
      type: "tool_result",
      tool_use_id: "toolu_1",
      content: [{ type: "text", text: "The path /memories/a.md does not exist. Please provide a valid path." }],
      is_error: true,
    },
  ]);
});
