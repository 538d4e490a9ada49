import { agent, type Message, type Middleware, refused, type RunHandle, SessionError, tool, user } from "@jizai/jizai";
import { audit } from "@jizai/jizai/middleware/audit";
import { claude_hooks, type HookCallback } from "@jizai/jizai/middleware/claude_hooks";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { logger } from "@jizai/jizai/middleware/logger";
import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { processOf, shared } from "../support/process.ts";
import { first, framesOf, piecesOf, post } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

/** Sends `texts` to a run while its tool works. Returns the reasons of refusals, the transcript, and the last request. */
async function steered(
  use: readonly Middleware[],
  texts: readonly string[],
  messages: readonly Message[] = [user("Go")],
) {
  const refusals: unknown[] = [];
  const work = tool({
    name: "work",
    description: "Works",
    input: z.object({}),
    async execute() {
      for (const text of texts) {
        await run.send(text).catch((error) => refusals.push(error instanceof SessionError ? error.message : error));
      }
      return "Worked.";
    },
  });
  const model = scripted({ calls: [["work", {}]] }, "Done.");
  const run: RunHandle<unknown> = agent({ model, tools: [work], use }).run({ messages, onError: () => {} });
  const events = await Array.fromAsync(run.events);
  const result = await run.result;
  return {
    refusals: refusals.map((reason) => String(reason).replace(/"[^"]*"/, "")),
    transcript: lines(result.messages),
    asked: lines(model.requests.at(-1)?.messages ?? []),
    events,
    result,
  };
}

Deno.test("rateLimit() counts messages to a run while it works", async () => {
  const limit = rateLimit({ per: () => "all", limit: 2, window: 10_000 });
  const { refusals, transcript } = await steered([limit], ["one", "two"]);
  assertEquals(transcript, ["user Go", "call work", "ok Worked.", "user one", "assistant Done."]);
  assertEquals(refusals, ["Cannot send a message to run : Too many requests: try again in 10 s."]);
});

Deno.test("rateLimit() does not count the history that a client sends", async () => {
  const history: Message[] = [user("One"), { role: "assistant", parts: [{ type: "text", text: "Two" }] }, user("Go")];
  const limit = rateLimit({ per: () => "all", limit: 1, window: 10_000 });
  assertEquals((await steered([limit], [], history)).result.status, "done");
});

Deno.test("audit() records steering and history, after redact() has masked them", async () => {
  const written: string[] = [];
  const history: Message[] = [user("One"), { role: "assistant", parts: [{ type: "text", text: "Two" }] }, user("Go")];
  const use = [redact({ patterns: [/hunter2/] }), audit((line) => void written.push(line))];
  await steered(use, ["Use hunter2"], history);
  const records = written.map((line) => JSON.parse(line)).filter(({ type }) => type === "input" || type === "prompt");
  assertEquals(records.map(({ type, source, input }) => [type, source, input]), [
    ["input", "history", "One"],
    ["prompt", undefined, "Go"],
    ["input", "steering", "Use [redacted]"],
  ]);
});

Deno.test("logger() writes a line for each message from outside", async () => {
  const written: string[] = [];
  const log = logger(({ point, outcome }) => written.push(`${point} ${outcome}`));
  const guard: Middleware = {
    name: "guard",
    input: (ctx, next) => ctx.source === "steering" ? Promise.resolve(refused("No.")) : next(),
  };
  await steered([log, guard], ["one"]);
  assertEquals(written.filter((line) => line.startsWith("input")), ["input accepted", "input cancelled"]);
});

for (const dialect of ["claude", "qoder"] as const) {
  Deno.test(`${dialect}: UserPromptSubmit fires for a message to a run while it works, and can refuse it`, async () => {
    const prompts: string[] = [];
    const guard: HookCallback = (input) => {
      if (input.hook_event_name !== "UserPromptSubmit") return {};
      prompts.push(input.prompt);
      if (input.prompt.includes("bad")) return { decision: "block", reason: "It is bad." };
      const additionalContext = `${input.prompt} was checked.`;
      return { hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext } };
    };
    const hooks = claude_hooks({ UserPromptSubmit: [{ hooks: [guard] }] }, { dialect });
    const { refusals, transcript, asked } = await steered([hooks], ["one", "bad"]);
    assertEquals(prompts, ["Go", "one", "bad"]);
    assertEquals(refusals, ["Cannot send a message to run : It is bad."]);
    assertEquals(transcript.filter((line) => line.startsWith("user") && !line.includes("checked")), [
      "user Go",
      "user one",
    ]);
    assertEquals(asked.some((line) => line.includes("one was checked.")), true);
  });
}

Deno.test("Claude: context for a message to a run in another process is delivered with the message", async () => {
  const among = shared();
  const gate = Promise.withResolvers<string>();
  const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => gate.promise });
  const check: HookCallback = (input) => {
    const additionalContext = input.hook_event_name === "UserPromptSubmit" ? `${input.prompt} was checked.` : "";
    return { hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext } };
  };
  const model = scripted({ calls: [["work", {}]] }, "Done.");
  const made = () => agent({ model, tools: [work], use: [claude_hooks({ UserPromptSubmit: [{ hooks: [check] }] })] });
  const [here, there] = [processOf(among, made()).app, processOf(among, made()).app];
  const pieces = piecesOf(await post(here, "/runs", { prompt: "Go" }));
  const begun = await pieces.until(`"tool.started"`);
  const { run } = first("run.started", framesOf(begun));
  assertEquals((await post(there, `/runs/${run}/messages`, { text: "one" })).status, 202);
  gate.resolve("Worked.");
  const text = await pieces.rest();
  assertEquals(text.includes("one was checked."), false);
  assertEquals(lines(model.requests[1]?.messages ?? []).slice(-3), [
    "ok Worked.",
    "input one was checked.",
    "user one",
  ]);
});

Deno.test("Claude: a UserPromptSubmit hook that exceeds its timeout refuses a message to a run while it works", async () => {
  const late: HookCallback = (input) =>
    input.hook_event_name === "UserPromptSubmit" && input.prompt === "one"
      ? new Promise(() => {})
      : Promise.resolve({});
  const hooks = claude_hooks({ UserPromptSubmit: [{ hooks: [late], timeout: 0.01 }] }, { dialect: "claude" });
  const { refusals, transcript } = await steered([hooks], ["one"]);
  assertEquals([refusals.length, transcript.includes("user one")], [1, false]);
});

Deno.test("Copilot: onUserPromptSubmitted fires for a message to a run while it works, and can change it", async () => {
  const hooks = copilot_hooks({
    onUserPromptSubmitted: ({ prompt }) => ({
      modifiedPrompt: `${prompt}!`,
      ...(prompt === "one" && { additionalContext: "He is loud." }),
    }),
  });
  const { refusals, transcript, events } = await steered([hooks], ["one"]);
  assertEquals(refusals, []);
  const shown = events.flatMap((event) => event.type === "steering.injected" ? lines(event.messages) : []);
  assertEquals(shown, ["user one!"]);
  assertEquals(transcript, [
    "user Go!",
    "call work",
    "ok Worked.",
    "input He is loud.",
    "user one!",
    "assistant Done.",
  ]);
});

Deno.test("Copilot: an answer that is hidden from the person stays hidden after a message to the run", async () => {
  const hooks = copilot_hooks({ onUserPromptSubmitted: ({ prompt }) => ({ suppressOutput: prompt === "Go" }) });
  const { result, transcript } = await steered([hooks], ["one"]);
  assertEquals([result.text, transcript.at(-1)], ["", "assistant Done."]);
});
