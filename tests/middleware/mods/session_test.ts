import { agent, type Event, memory } from "@jizai/jizai";
import { mods } from "@jizai/jizai/middleware/mods";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { compact } from "@jizai/jizai/engine";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { advanceUntilSettled } from "../../support/fake_time.ts";
import { notices, shell } from "../../support/hooked.ts";
import { hook, type Loose, mod, modded, ran, reports, resumed } from "../../support/modded.ts";

Deno.test("the events around a run have the fields of a process without a person", async () => {
  const seen: Loose = {};
  const looking = hook("*", async (_$, e, next) => {
    seen[next.event] ??= e;
    const result = await next(e);
    seen[`${next.event} result`] ??= result;
    return result;
  });
  const { result } = await ran([looking], { cwd: "/work" });
  const turnId = result.run;
  const usage = {
    ...{ input_tokens: 2, output_tokens: 2, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
    model: "scripted",
  };
  assertEquals(seen["session.start"], { cwd: "/work", surface: null, isInteractive: false });
  assertEquals(seen["prompt.submit"], { text: "Hi", origin: { kind: "sdk" }, wait: false });
  assertEquals(seen["prompt.submit result"], { text: "Hi" });
  assertEquals(seen["turn.start"], { text: "Hi", turnId });
  assertEquals({ ...seen["turn.complete"], durationMs: 0 }, {
    ...{ answer: "Done.", durationMs: 0, isAborted: false, turnId, usage, reason: "answer" },
  });
  assertEquals(seen["session.end"], { reason: "other", sessionId: result.session, resume: { id: result.session } });
});

Deno.test("prompt.submit rewrites the prompt and adds context", async () => {
  const { result } = await ran([
    hook(
      "prompt.submit",
      (_$, e, next) => next({ ...e, text: `${e.text}!`, context: [...e.context ?? [], "Be brief."] }),
    ),
  ], { calls: [] });
  assertEquals(result.messages.slice(0, 2).map((message: Loose) => message.parts?.[0].text), ["Hi!", "Be brief."]);
});

Deno.test("a dropped prompt begins no turn and stores nothing", async () => {
  const seen: string[] = [];
  const dropping = mod((on) => {
    on("*", (_$, e, next) => {
      seen.push(next.event);
      return next(e);
    });
    on("prompt.submit", () => ({ drop: "Not today." }));
  });
  const { result } = await ran([dropping]);
  assertEquals([result.status, result.reason, result.messages], ["cancelled", "Not today.", []]);
  assertEquals(seen, ["session.start", "prompt.context", "prompt.submit", "session.end"]);
});

Deno.test("a drop after next() fails, and the prompt runs", async () => {
  const outcome = await ran([
    hook("prompt.submit", async (_$, e, next) => {
      await next(e);
      return { drop: "late" };
    }),
  ]);
  assertEquals(outcome.result.status, "done");
  assertEquals(reports(outcome), [
    'The mod "guard" failed at prompt.submit: it returned a wrong answer: "drop" comes after next()',
  ]);
});

Deno.test("a message to a run while it works passes prompt.submit with the turn's id", async () => {
  const seen: Loose[] = [];
  const submitting = hook("prompt.submit", (_$, e, next) => {
    seen.push([e.text, e.turnId]);
    return e.text === "stop that" ? { drop: "no" } : next({ ...e, text: e.text.toUpperCase() });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const before = () => {
    asked.resolve();
    return promise;
  };
  const model = scripted({ calls: [["Bash", { command: "ls" }]], before }, "Done.");
  const assistant = agent({ model, tools: [shell()], use: [mods(submitting)] });
  const run = assistant.run("Hi");
  const events = Array.fromAsync(run.events);
  await asked.promise;
  await run.send("more");
  await run.send("stop that").catch(() => {});
  resolve();
  const { messages, run: id } = await run.result;
  await events;
  assertEquals(seen, [["Hi", undefined], ["more", id], ["stop that", id]]);
  const texts = messages.flatMap((message: Loose) => message.role === "user" ? [message.parts[0].text] : []);
  assertEquals(texts, ["HI", "MORE"]);
});

Deno.test("prompt.context adds blocks to a new session, and prompt.compose and prompt.section change the instructions", async () => {
  const model = scripted("1", "2");
  const calls: string[] = [];
  const composing = mod((on) => {
    on("prompt.context", (_$, e, next) => next({ ...e, blocks: [...e.blocks, { name: "env", text: "A is 1." }] }));
    on("prompt.section", { name: "instructions" }, async (_$, e, next) => {
      calls.push("section");
      const { text } = await next(e);
      return { text: `${text} Always.` };
    });
    on("prompt.compose", async (_$, e, next) => {
      const { sections } = await next(e);
      return {
        sections: [...sections, { id: "a", text: "Last.", scope: "session" }, {
          id: "b",
          text: "First.",
          scope: "shared",
        }],
      };
    });
  });
  const assistant = agent({ model, instructions: "Be brief.", use: [mods(composing)] });
  const { session } = await assistant.run("Hi").result;
  await assistant.run({ prompt: "Again", session }).result;
  assertEquals(model.requests.map(({ instructions }) => instructions), [
    "First.\n\nBe brief. Always.\n\nLast.",
    "First.\n\nBe brief. Always.\n\nLast.",
  ]);
  assertEquals((model.requests[0]?.messages[0] as Loose).parts[0].text, "# env\nA is 1.");
  assertEquals([calls.length, model.requests[1]?.messages.length], [2, 4]);
});

Deno.test("a dropped section leaves the instructions empty", async () => {
  const model = scripted("1");
  const assistant = agent({
    model,
    instructions: "Be brief.",
    use: [mods(hook("prompt.section", () => ({ text: null })))],
  });
  await assistant.run("Hi").result;
  assertEquals(model.requests[0]?.instructions, "");
});

Deno.test("tool.describe changes the description of a tool, once for each run", async () => {
  const seen: Loose[] = [];
  const agentOf = modded([
    hook("tool.describe", async (_$, e, next) => {
      seen.push(e);
      return { ...await next(e), description: "Runs safely." };
    }),
  ]);
  await agentOf.run().outcome;
  assertEquals(seen, [{ tool: "Bash", description: "Runs a command", provider: { plugin: "engine", tier: "core" } }]);
  assertEquals(agentOf.model.requests.map(({ tools }) => tools[0]?.description), ["Runs safely.", "Runs safely."]);
});

Deno.test("another text of turn.complete is a line beneath the answer", async () => {
  const outcome = await ran([
    hook("turn.complete", async (_$, e, next) => ({ ...await next(e), text: `${e.answer} (1 call)` })),
  ]);
  assertEquals([notices(outcome.events), outcome.result.text], [["Done. (1 call)"], "Done."]);
  assertEquals(notices((await ran([hook("turn.complete", (_$, e, next) => next(e))])).events), []);
});

Deno.test("turn.complete and session.end fire once after a failure and an abort", async () => {
  const seen: unknown[] = [];
  const looking = mod((on) => {
    for (const event of ["turn.complete", "session.end"]) {
      on(event, (_$, e, next) => {
        seen.push([event, e.reason, e.isAborted]);
        return next(e);
      });
    }
  });
  const failing = agent({ model: scripted({ error: new Error("broken") }), use: [mods(looking)] });
  const failed = await failing.run({ prompt: "Hi", onError: () => {} }).result;
  const endless = agent({
    model: scripted({
      before: (_request, signal) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    }),
    use: [mods(looking)],
  });
  const run = endless.run("Hi");
  const events = Array.fromAsync(run.events);
  await new Promise((resolve) => setTimeout(resolve, 5));
  run.stop();
  const aborted = await run.result;
  await events;
  assertEquals([failed.status, aborted.status], ["failed", "aborted"]);
  assertEquals(seen, [
    ["turn.complete", "error", false],
    ["session.end", "other", undefined],
    ["turn.complete", "aborted", true],
    ["session.end", "other", undefined],
  ]);
});

Deno.test("a pause is no end: session.end and turn.complete fire once after the resume, and the start not again", async () => {
  const seen: string[] = [];
  const looking = hook("*", (_$, e, next) => {
    seen.push(next.event);
    return next(e);
  });
  await resumed([looking], [{ type: "approve", callId: "a" }], { tools: [shell({ ask: true })] });
  for (const event of ["session.start", "prompt.submit", "turn.start", "turn.complete", "session.end"]) {
    assertEquals([event, seen.filter((each) => each === event).length], [event, 1]);
  }
});

Deno.test("all hooks of session.end have a second and a half together", async () => {
  using time = new FakeTime();
  const stuck = hook("session.end", () => new Promise(() => {}));
  const outcome = await advanceUntilSettled(time, ran([stuck]));
  assertEquals(outcome.result.status, "done");
  assertEquals(reports(outcome), ["Cannot wait for session.end: its hooks took more than 1500 ms"]);
});

/** An agent whose session is compacted on request. */
async function compactedWith(hooks: readonly Loose[]) {
  const model = scripted("one", "two", "three", "Summary of all.");
  const assistant = agent({ model, use: [mods(hooks), compaction()] });
  const store = memory();
  const session = "s";
  await assistant.run({ prompt: "a", session, store }).result;
  await assistant.run({ prompt: "b", session, store }).result;
  await assistant.run({ prompt: "c", session, store }).result;
  const { status, messages, reason, error } = await compact(assistant, { session, store, instructions: "Keep names." })
    .result;
  if (error) throw error;
  const texts = messages.map((message: Loose) => message.parts.map(({ text }: Loose) => text).join(""));
  return { status, texts, reason };
}

Deno.test("session.compact skips a compaction, and the transcript stays", async () => {
  const { status, texts, reason } = await compactedWith([hook("session.compact", () => ({ skip: "Not yet." }))]);
  assertEquals([status, reason, texts], ["cancelled", "Not yet.", ["a", "one", "b", "two", "c", "three"]]);
});

Deno.test("session.compact receives the transcript with handles, and may answer with messages of its own", async () => {
  const seen: Loose[] = [];
  const { texts } = await compactedWith([
    hook("session.compact", (_$, e) => {
      seen.push([e.trigger, e.instructions, e.messages.length, typeof e.messages[0].handle]);
      return { messages: [{ role: "user", text: "Summary.", toolUses: [] }, ...e.messages.slice(-2)] };
    }),
  ]);
  assertEquals([seen, texts], [[["manual", "Keep names.", 6, "string"]], ["Summary.", "c", "three"]]);
});

Deno.test("session.compact changes the messages of the compaction beneath", async () => {
  const { texts } = await compactedWith([
    hook("session.compact", async (_$, e, next) => {
      const { messages } = await next(e);
      return { messages: [{ role: "user", text: "Before.", toolUses: [] }, ...messages] };
    }),
  ]);
  assertEquals(texts[0], "Before.");
});

/** Runs a parent whose model asks a child, with mods of the parent. */
async function spawned(hooks: readonly Loose[], options: object = {}) {
  const child = agent({ name: "reader", description: "Reads", model: scripted("It is short."), tools: [shell()] });
  const model = scripted({ calls: [["reader", { prompt: "Read it" }]] }, "Done.");
  const assistant = agent({ model, tools: [asTool(child)], use: [mods(hooks, options)] });
  const run = assistant.run({ prompt: "Hi", onError: () => {} });
  const events: Event[] = await Array.fromAsync(run.events);
  const { messages } = await run.result;
  const results = messages.flatMap((message: Loose) => message.role === "tool" ? message.results : []);
  return { text: results[0]?.parts[0].text, model, events };
}

Deno.test("agent.spawn denies a subagent, and changes its prompt and its model", async () => {
  const seen: Loose[] = [];
  const denied = await spawned([hook("agent.spawn", () => ({ deny: "No agents." }))]);
  assertEquals(denied.text.includes("No agents."), true);
  const other = { ...scripted("From other."), id: "other" };
  const changing = hook("agent.spawn", async (_$, e, next) => {
    seen.push([e.prompt, e.subagentType, e.parentModel, e.background]);
    const result = await next({ ...e, prompt: "Read it all", model: "other" });
    seen.push(result.model);
    return result;
  });
  const { text } = await spawned([changing], { models: (id: string) => id === "other" ? other : undefined });
  assertEquals(text, "From other.");
  assertEquals((other as Loose).requests[0].messages[0].parts[0].text, "Read it all");
  assertEquals(seen, [["Read it", "reader", "scripted", false], "other"]);
});

Deno.test("subagents inherit the mods, with the id of their run as agentId, which agent.spawn gives", async () => {
  const seen: Loose[] = [];
  const looking = mod((on) => {
    let count = 0;
    on("*", async ($, e, next) => {
      if (e.agentId !== undefined) seen.push([next.event, ++count, e.agentId]);
      const result = await next(e);
      if (next.event === "agent.spawn") seen.push(["spawned", ++count, result.agentId]);
      if (next.event === "session.end") seen.push((await $.agent.list()).map(({ id, status }: Loose) => [id, status]));
      return result;
    });
  });
  const { events } = await spawned([looking]);
  const id = events.flatMap((event) => event.type === "subagent.started" ? [event.run] : [])[0];
  assertEquals(seen, [["spawned", 1, id], ["turn.step", 2, id], ["turn.complete", 3, id], [[id, "completed"]]]);
});

Deno.test("agent.offer hides a subagent from the model, and refuses it", async () => {
  const { text, model } = await spawned([hook("agent.offer", (_$, e) => ({ isOffered: e.agent !== "reader" }))]);
  assertEquals(model.requests[0]?.tools, []);
  assertEquals(text.includes("is not offered"), true);
});

Deno.test("session.append changes texts at the doors of prompts, responses and results, and the result beneath tool.call", async () => {
  const seen: Loose[] = [];
  const appending = mod((on) => {
    on("session.append", async (_$, e, next) => {
      const { message } = await next(e);
      seen.push([e.door, message.role, message.content.map(({ type }: Loose) => type)]);
      const content = message.content.map((block: Loose) => ({
        ...block,
        ...(block.type === "text" && { text: `<${block.text}>` }),
        ...(block.type === "tool_result" && { content: `<${block.content}>` }),
      }));
      return { message: { ...message, content } };
    });
    on("tool.call", async (_$, e, next) => {
      const result = await next(e);
      seen.push(result.text);
      return result;
    });
  });
  const { result, lines } = await ran([appending]);
  assertEquals(seen, [
    ["prompt", "user", ["text"]],
    ["response", "assistant", ["tool_use"]],
    ["tool-result", "user", ["tool_result"]],
    "<ran ls>",
    ["response", "assistant", ["text"]],
  ]);
  assertEquals([(result.messages[0] as Loose).parts[0].text, ...lines], [
    "<Hi>",
    "call Bash",
    "ok <ran ls>",
    "assistant <Done.>",
  ]);
});

Deno.test("with failure: closed, a failed hook at agent.spawn refuses the subagent", async () => {
  const failing = hook("agent.spawn", () => ({ model: 5 }));
  assertEquals((await spawned([failing])).text, "It is short.");
  const { text } = await spawned([failing], { failure: "closed" });
  assertEquals(text.includes('The mod "guard" failed at agent.spawn.'), true);
});
