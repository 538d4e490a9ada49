import { agent, type AgentOptions, serve } from "@jizai/jizai";
import { notes, type NotesOptions } from "@jizai/jizai/middleware/notes";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { asTool } from "@jizai/jizai/subagents";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { post } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

const write = (text: string, id?: number) => ["write_note", { text, ...(id !== undefined && { id }) }] as const;
const read = ["read_notes", {}] as const;
const remove = (id: number) => ["delete_note", { id }] as const;
type Call = readonly [string, object];

/** Creates a function that makes calls in a new session of an owner, and returns their results. */
function noteSession(options: Partial<NotesOptions> = {}) {
  const keyValue = options.keyValue ?? memoryKeyValue();
  return async (owner: string | undefined, ...calls: readonly Call[]) => {
    const model = scripted({ calls }, "Done.");
    const assistant = agent({ model, use: [notes({ keyValue, ...options })] });
    const { messages } = await assistant.run({ prompt: "Hi", ...(owner !== undefined && { owner }) }).result;
    const context = lines(model.requests[0]?.messages ?? []).filter((line) => line.includes("notes about this user"));
    return { context, results: lines(messages.filter(({ role }) => role === "tool")) };
  };
}

Deno.test("notes() obeys the laws of middleware", async () => {
  await testMiddleware(() => notes({ keyValue: memoryKeyValue(), owner: ({ run }) => run.id }), {
    calls: [["write_note", { text: "x" }], ["read_notes", {}]],
  });
});

Deno.test("notes() keeps notes across sessions, for their owner only", async () => {
  const session = noteSession();
  assertEquals((await session("ada", read)).results, ["ok There are no notes."]);
  assertEquals((await session("ada", write("Likes tea"), write("Is tall"))).results, [
    "ok Kept as note 1.",
    "ok Kept as note 2.",
  ]);
  assertEquals(await session("ada", read), {
    context: ["session Your notes about this user:\n1. Likes tea\n2. Is tall"],
    results: ["ok 1. Likes tea\n2. Is tall"],
  });
  assertEquals(await session("bob", read), { context: [], results: ["ok There are no notes."] });
});

Deno.test("notes() replaces and deletes notes, and uses the numbers of deleted notes again", async () => {
  const session = noteSession({ max: 2 });
  await session("ada", write("a"), write("b"));
  assertEquals((await session("ada", write("c"))).results, [
    "error Cannot write a note: there are 2. Replace or delete one first.",
  ]);
  assertEquals((await session("ada", write("B", 2), remove(1), write("c"), read)).results, [
    "ok Kept as note 2.",
    "ok Deleted.",
    "ok Kept as note 1.",
    "ok 1. c\n2. B",
  ]);
});

Deno.test("notes() keeps the notes of sessions that write at the same time", async () => {
  const session = noteSession();
  await Promise.all(Array.from({ length: 10 }, (_, index) => session("ada", write(`note ${index}`))));
  const { results: [text = ""] } = await session("ada", read);
  assertEquals(text.split("\n").length, 10);
});

Deno.test("notes() replaces no note that does not exist, and gives its number to no two notes", async () => {
  const session = noteSession();
  assertEquals((await session("ada", write("a", 2), write("b"), write("c"), read)).results, [
    "error Cannot replace note 2: it does not exist. Write a new note without `id`.",
    "ok Kept as note 1.",
    "ok Kept as note 2.",
    "ok 1. b\n2. c",
  ]);
});

Deno.test("notes() gives the numbers of deleted notes to several sessions at the same time", async () => {
  const session = noteSession({ max: 4 });
  await session("ada", ...["a", "b", "c", "d"].map((text) => write(text)));
  await session("ada", remove(1), remove(3), remove(4));
  const written = await Promise.all(["x", "y", "z"].map((text) => session("ada", write(text))));
  const ids = written.map(({ results: [line = ""] }) => line.replace("ok Kept as note ", ""));
  const expected = ["x", "y", "z"].map((text, index) => `${ids[index]} ${text}`).concat("2. b");
  assertEquals((await session("ada", read)).results, [`ok ${expected.toSorted().join("\n")}`]);
});

Deno.test("notes() reads and writes nothing without an owner", async () => {
  const keyValue = memoryKeyValue();
  assertEquals((await noteSession({ keyValue })(undefined, write("x"), read)).results, [
    "error Cannot use notes: the session has no owner.",
    "error Cannot use notes: the session has no owner.",
  ]);
  assertEquals((await noteSession({ keyValue, owner: () => "" })(undefined, read)).results, [
    "error Cannot use notes: the session has no owner.",
  ]);
  const mine = noteSession({ keyValue, owner: () => "me" });
  assertEquals((await mine(undefined, write("x"), read)).results, ["ok Kept as note 1.", "ok 1. x"]);
});

Deno.test("notes() refuses inputs that are not valid", async () => {
  const session = noteSession({ max: 3, maxLength: 4 });
  const calls: Call[] = [write(""), write("12345"), write("x", 4), write("x", 1.5), remove(0), ["write_note", {}]];
  const { results } = await session("ada", ...calls);
  assertEquals(results.map((line) => line.split(" ")[0]), Array(6).fill("error"));
  assertEquals((await session("ada", read)).results, ["ok There are no notes."]);
  for (const sizes of [{ max: 0 }, { maxLength: 0.5 }]) {
    assertThrows(() => notes({ keyValue: memoryKeyValue(), ...sizes }), RangeError, "a whole number of 1 or more");
  }
});

Deno.test("notes() leaves the notes out of the context on request, and forgets them when they expire", async () => {
  using time = new FakeTime();
  const session = noteSession({ recall: false, expireIn: 1_000 });
  await session("ada", write("x"));
  assertEquals(await session("ada", read), { context: [], results: ["ok 1. x"] });
  time.tick(1_000);
  assertEquals((await session("ada", read)).results, ["ok There are no notes."]);
});

Deno.test("notes() starts a session without the notes if the database fails, and emits a warning", async () => {
  const keyValue = { ...memoryKeyValue(), get: () => Promise.reject(new Error("down")) };
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  const run = agent({ model: scripted("Done."), use: [notes({ keyValue })] })
    .run({ prompt: "Hi", owner: "ada", onError });
  const events = await Array.fromAsync(run.events);
  const messages = events.flatMap((event) => event.type === "warning" ? [event.message] : []);
  assertEquals([(await run.result).status, messages, errors.map(String)], [
    "done",
    ["The notes could not be read."],
    ["Error: down"],
  ]);
});

Deno.test("notes() uses the owner of a served request, also in a child agent", async () => {
  const keyValue = memoryKeyValue();
  const options = (script: readonly ScriptedAnswer[]): AgentOptions<unknown, never> => ({
    model: scripted(...script),
    use: [notes({ keyValue })],
  });
  const child = agent({ name: "child", ...options([{ calls: [read] }, "Read."]) });
  const parent = agent({
    model: scripted({ calls: [write("From Ada")] }, "Ok.", { calls: [["child", { prompt: "Read" }]] }, "Done."),
    tools: [asTool(child)],
    use: [notes({ keyValue })],
  });
  const app = serve(parent, { owner: (c) => c.req.header("who") });
  const runAs = async (who: string) => await (await post(app, "/runs", { prompt: "Hi" }, { who })).text();
  await runAs("ada");
  assertEquals((await runAs("ada")).includes("1. From Ada"), true);
});
