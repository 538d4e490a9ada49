import { assert, assertEquals } from "@std/assert";
import { type Message, type Middleware, user } from "@jizai/jizai";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { estimateTokens } from "../../src/core/lib/text.ts";
import { repairTranscript } from "../../src/core/transcript.ts";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { look, short, someTranscript } from "../support/long.ts";
import { compacting } from "../support/compacting.ts";

function isPersons(message: Message): boolean {
  return message.role === "user" && message.from === undefined;
}

function looking(...at: string[]): ScriptedStep {
  return { calls: at.map((at) => ["look", { at }] as const) };
}

Deno.test("a long transcript is trimmed to half of its limit before the model reads it", async () => {
  const model = scripted(looking("a", "b"), looking("c"), looking("d", "e"), looking("f"), "Done.");
  const context: Middleware = { session: (_, next) => next({ context: ["Be kind."] }) };
  const run = compacting({ model, tools: [look], use: [context], limits: { context: 350 } }).run("Look");
  const { messages } = await run.result;
  const head = ["session Be kind.", "user Look"];
  const three = [...head, "call look look", "ok Seen a", "ok Seen b", "call look", "ok Seen c"];
  const four = [...head, "call look look", "ok Seen d", "ok Seen e"];
  assertEquals(model.requests.map(({ messages }) => short(messages)), [
    head,
    three.slice(0, 5),
    three,
    four,
    [...four, "call look", "ok Seen f"],
  ]);
  assertEquals(short(messages), [...four, "call look", "ok Seen f", "assistant Done."]);
  assertEquals(eventLines(await eventsOfRun(run)).filter((line) => /^(compact|turn|model\.s)/.test(line)).slice(6), [
    "turn.started 3",
    "model.started 3 scripted",
    "turn.finished 3",
    "turn.started 4",
    "compact.started auto",
    "compact.finished auto compacted 364 156",
    "model.started 4 scripted",
    "turn.finished 4",
    "turn.started 5",
    "model.started 5 scripted",
    "turn.finished 5",
  ]);
});

Deno.test("trimming keeps the last prompt and the newest messages, with the context of hooks", async () => {
  const filler = "x".repeat(400);
  const history: Message[] = [
    user(`First ${filler}`),
    { role: "assistant", parts: [{ type: "text", text: `One ${filler}` }] },
    user(`Second ${filler}`),
    { role: "assistant", parts: [{ type: "text", text: `Two ${filler}` }] },
    user(`Third ${filler}`),
    user(`Beside ${filler}`, "prompt"),
    { role: "assistant", parts: [{ type: "text", text: `Three ${filler}` }] },
    user(`Keep going ${filler}`, "stop"),
    { role: "assistant", parts: [{ type: "text", text: `Four ${filler}` }] },
    user("replaced"),
  ];
  const model = scripted(({ messages }) => short(messages).join());
  const prompts: Middleware = { prompt: (_, next) => next({ prompt: user(`Now ${filler}`, "stop") }) };
  await compacting({ model, use: [prompts], limits: { context: 1 } }).run({ messages: history }).result;
  assertEquals(model.requests.map(({ messages }) => short(messages)), [
    ["user First", "user Third", "prompt Beside", "assistant Four", "stop Now"],
  ]);
});

Deno.test("trimming keeps the first messages of the conversation, also before there is an answer", async () => {
  const model = scripted("Done.");
  const context: Middleware = {
    session: (_, next) => next({ context: ["Be kind."] }),
    prompt: (_, next) => next({ context: ["Be quick."] }),
  };
  const { messages } = await compacting({ model, use: [context], limits: { context: 10 } }).run("Look").result;
  assertEquals(short(messages), ["session Be kind.", "user Look", "prompt Be quick.", "assistant Done."]);
});

Deno.test("trimming removes nothing if nothing can be removed", async () => {
  const calls: Message[] = [
    user("Look"),
    { role: "assistant", parts: [{ type: "text", text: "At what?" }] },
    user("a"),
  ];
  for (const messages of [calls.slice(0, 1), [user("Be kind.", "session"), user("Look")], [calls[0], user("a")]]) {
    const given = messages.filter((message) => message !== undefined);
    const run = compacting({ model: scripted("Done."), limits: { context: 1 } }).run({ messages: given });
    const [line] = eventLines(await eventsOfRun(run)).filter((line) => line.startsWith("compact.finished"));
    const size = estimateTokens(given);
    assertEquals(line, `compact.finished auto declined ${size} ${size} There is nothing that could be left out.`);
  }
});

Deno.test("trimming keeps calls and results together, and reaches its target if possible", async () => {
  for (let budget = 1; budget < 700; budget += 40) {
    const model = scripted(looking("a"), looking("b", "c"), looking("d"), looking("e", "f", "g"), "Done.");
    const run = compacting({ model, tools: [look], limits: { context: budget } }).run("Look");
    const events = await eventsOfRun(run);
    assertEquals(events.filter(({ type }) => type === "warning"), []);
    for (const [index, { messages }] of model.requests.entries()) {
      const fits = estimateTokens(messages) <= budget;
      const least = messages.length <= 3;
      assert(fits || least, `${budget}: request ${index} has ${messages.length} messages`);
      assertEquals(repairTranscript(messages).problems, []);
    }
  }
});

Deno.test("a trimmed transcript is valid, keeps its beginning, and has half of the limit if possible", async () => {
  for (let seed = 0; seed < 300; seed++) {
    const given = [...someTranscript(seed), user(`Now ${seed}`)];
    const context = 20 + seed * 7;
    const model = scripted("Done.");
    const events = await eventsOfRun(compacting({ model, limits: { context } }).run({ messages: given }));
    assertEquals(events.filter(({ type }) => type === "warning"), [], `seed ${seed}`);
    const sent = model.requests[0]?.messages ?? [];
    const [first] = given;
    assertEquals(sent[0], first?.role === "user" ? first : sent[0], `seed ${seed}`);
    assertEquals(sent.at(-1), given.at(-1), `seed ${seed}`);
    assertEquals(sent, given.filter((message) => sent.includes(message)), `seed ${seed}`); // in the original order
    const whole = sent.length === given.length;
    assertEquals(whole, !events.some((event) => event.type === "compact.finished" && event.status === "compacted"));
    const [, second] = given.flatMap((message, index) => isPersons(message) ? [index] : []);
    const answer = given.findIndex(({ role }) => role === "assistant");
    const opened = Math.min(...[answer, second ?? -1].filter((index) => index >= 0));
    const least = sent.length === opened + 1;
    assert(
      whole ? least || estimateTokens(given) <= context : least || estimateTokens(sent) <= context / 2,
      `seed ${seed}`,
    );
  }
});

Deno.test("the kept beginning does not grow with repeated trimming", async () => {
  const assistant = compacting({
    model: scripted(...Array.from({ length: 60 }, (_, index) => `Answer ${index} ${"x".repeat(400)}`)),
    use: [{
      name: "beside",
      prompt: (_, next) => next({ context: [`Beside ${"x".repeat(200)}`] }),
      session: (_, next) => next({ context: ["Be kind."] }),
    }],
    limits: { context: 600 },
  });
  const sizes: number[] = [];
  for (let index = 0; index < 60; index++) {
    const { messages } = await assistant.run({ session: "s", prompt: `Prompt ${index} ${"x".repeat(300)}` }).result;
    assertEquals(short(messages).slice(0, 3), ["session Be kind.", "user Prompt 0", "prompt Beside"]);
    sizes.push(messages.length);
  }
  assertEquals(Math.max(...sizes.slice(30)), Math.max(...sizes.slice(0, 30)));
});
