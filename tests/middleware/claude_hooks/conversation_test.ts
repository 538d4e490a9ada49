/**
 * The outputs of hooks that are about prompts, sessions and stops, and failures of hooks.
 */
import { agent, compacted, type Middleware, user } from "@jizai/jizai";
import { claude_hooks, type HookCallback, type HookConfig } from "@jizai/jizai/middleware/claude_hooks";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { settled } from "../../support/batch.ts";
import { hooked, hooks, ran, returning, returningOutput, shell, warnings } from "../../support/hooked.ts";
import { lines } from "../../support/transcript_lines.ts";
import { compacting } from "../../support/compacting.ts";

// ── prompts, sessions, stops ──

Deno.test("context of SessionStart is before the first prompt of a new session, and after the prompt of a known one", async () => {
  const start: HookCallback = (input) =>
    input.hook_event_name === "SessionStart"
      ? { hookSpecificOutput: { hookEventName: "SessionStart", additionalContext: `At ${input.source}.` } }
      : {};
  const assistant = agent({ model: scripted("One.", "Two."), use: [claude_hooks({ SessionStart: hooks(start) })] });
  await assistant.run({ session: "s", prompt: "Hi" }).result;
  const { messages } = await assistant.run({ session: "s", prompt: "Again" }).result;
  assertEquals(lines(messages), [
    "session At startup.",
    "user Hi",
    "assistant One.",
    "user Again",
    "prompt At resume.",
    "assistant Two.",
  ]);
});

Deno.test("initialUserMessage is put before the first prompt", async () => {
  const prompts: unknown[] = [];
  const config: HookConfig = {
    SessionStart: hooks(returningOutput({ initialUserMessage: "Read the plan." })),
    UserPromptSubmit: hooks((input) => void ("prompt" in input && prompts.push(input.prompt))),
  };
  const { messages } = await agent({ model: scripted("Yes."), use: [claude_hooks(config)] }).run("Go").result;
  assertEquals(messages[0], {
    ...user("Read the plan.\n\n"),
    parts: [{ type: "text", text: "Read the plan.\n\n" }, { type: "text", text: "Go" }],
  });
  assertEquals(prompts, ["Go"]);
});

Deno.test("context of SessionStart after a compaction is at the end of the kept messages", async () => {
  const start: HookCallback = (input) =>
    "source" in input && input.source === "compact"
      ? { hookSpecificOutput: { hookEventName: "SessionStart", additionalContext: "Use tabs." } }
      : {};
  const short: Middleware = {
    name: "short",
    compact: ({ transcript }) => Promise.resolve(compacted(transcript.slice(-1))),
  };
  const model = scripted("One.", "Two.");
  const assistant = compacting({
    model,
    use: [claude_hooks({ SessionStart: [{ matcher: "compact", hooks: [start] }] }), short],
    limits: { context: 30 },
  });
  await assistant.run({ session: "s", prompt: "Hi" }).result;
  await assistant.run({ session: "s", prompt: "x".repeat(100) }).result;
  assertEquals(model.requests.map(({ messages }) => lines(messages)), [
    ["user Hi"],
    [`user ${"x".repeat(100)}`, "claude_hooks Use tabs."],
  ]);
});

Deno.test("Claude: a block at PreCompact declines the compaction; Qoder: it has no effect", async () => {
  const config = { PreCompact: hooks(returning({ decision: "block", reason: "Not now." })) };
  const kept = async (dialect: "qoder" | "claude") => {
    const model = scripted("One.", "Two.");
    const short: Middleware = {
      name: "short",
      compact: ({ transcript }) => Promise.resolve(compacted(transcript.slice(-1))),
    };
    const assistant = compacting({ model, use: [claude_hooks(config, { dialect }), short], limits: { context: 30 } });
    await assistant.run({ session: "s", prompt: "Hi" }).result;
    await assistant.run({ session: "s", prompt: "x".repeat(100) }).result;
    return model.requests[1]?.messages.length;
  };
  assertEquals([await kept("qoder"), await kept("claude")], [1, 3]);
});

Deno.test("Qoder: sequential hooks of UserPromptSubmit receive the context of the hooks before them", async () => {
  const prompts: unknown[] = [];
  const adds: HookCallback = (input) => {
    if (input.hook_event_name !== "UserPromptSubmit") return;
    prompts.push(input.prompt);
    return { hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext: `Note ${prompts.length}.` } };
  };
  const model = scripted("Done.");
  const config = { UserPromptSubmit: [{ sequential: true, hooks: [adds, adds] }] };
  await agent({ model, use: [claude_hooks(config)] }).run("Hi").result;
  assertEquals(prompts, ["Hi", "Hi\n\nNote 1."]);
  assertEquals(lines(model.requests[0]?.messages ?? []), ["user Hi", "prompt Note 1.Note 2."]);
});

Deno.test("initialUserMessage is added once, also with nested middleware", async () => {
  const use = ["One.", "Two."].map((initialUserMessage) =>
    claude_hooks({ SessionStart: hooks(returningOutput({ initialUserMessage })) })
  );
  const { messages } = await agent({ model: scripted("Yes."), use }).run("Go").result;
  assertEquals(lines(messages), ["user Two.\n\nGo", "assistant Yes."]);
});

Deno.test("nested middleware receive the inputs with which the calls of a batch ran", async () => {
  const reported: unknown[] = [];
  const look: HookCallback = (input) => {
    if (input.hook_event_name === "PostToolBatch") reported.push(input.tool_calls.map(({ tool_input }) => tool_input));
  };
  const before = [claude_hooks({ PostToolBatch: hooks(look) })];
  const config = {
    PreToolUse: hooks(returningOutput({ updatedInput: { command: "pwd" } })),
    PostToolBatch: hooks(look),
  };
  await hooked(config, { before }).run().outcome;
  assertEquals(reported, [[{ command: "pwd" }], [{ command: "pwd" }]]);
});

Deno.test("Qoder: no further sequential hook runs after the run was stopped", async () => {
  const asked: string[] = [];
  const stops: HookCallback = () => {
    asked.push("stops");
    running.stop();
  };
  const after: HookCallback = () => void asked.push("after");
  const running = hooked({ PreToolUse: [{ sequential: true, hooks: [stops, after] }] }).run();
  assertEquals([(await running.outcome).result.status, asked], ["aborted", ["stops"]]);
});

Deno.test("a block at UserPromptExpansion refuses the prompt, and its context is added", async () => {
  const config = {
    UserPromptExpansion: [
      { matcher: "deploy", hooks: [returning({ decision: "block", reason: "Not on Fridays." })] },
      { matcher: "review", hooks: [returningOutput({ additionalContext: "Be kind." })] },
    ],
  };
  const run = async (prompt: string) => {
    const { messages, reason } = await agent({ model: scripted("Done."), use: [claude_hooks(config)] }).run(prompt)
      .result;
    return [lines(messages), reason];
  };
  assertEquals(await run("/deploy now"), [[], "Not on Fridays."]);
  assertEquals(await run("/review"), [["user /review", "prompt Be kind.", "assistant Done."], undefined]);
});

Deno.test("context of Stop without a block keeps the agent going too", async () => {
  const hook: HookCallback = (input) =>
    "stop_hook_active" in input && !input.stop_hook_active
      ? { hookSpecificOutput: { hookEventName: "Stop", additionalContext: "Check it." } }
      : {};
  const { messages } = await agent({ model: scripted("One.", "Two."), use: [claude_hooks({ Stop: hooks(hook) })] }).run(
    "Hi",
  ).result;
  assertEquals(lines(messages), ["user Hi", "assistant One.", "stop Check it.", "assistant Two."]);
});

// ── messages for the person, and for observers ──

Deno.test("displayContent changes the text on the screen, not the transcript", async () => {
  const masks: HookCallback = async (input) => {
    if (input.hook_event_name !== "MessageDisplay") return;
    await Promise.resolve();
    const displayContent = input.delta.replaceAll("hunter2", "***");
    return { hookSpecificOutput: { hookEventName: "MessageDisplay", displayContent } };
  };
  const model = scripted({ text: ["The password is hun", "ter2.\nKeep hunter2", " safe."] });
  const run = agent({ model, use: [claude_hooks({ MessageDisplay: hooks(masks) })] }).run("Hi");
  const events = await Array.fromAsync(run.events);
  assertEquals(events.flatMap((event) => event.type === "text.delta" ? [event.text] : []), [
    "The password is ***.\n",
    "Keep *** safe.",
  ]);
  assertEquals(events.flatMap((event) => event.type === "model.finished" ? [event.text] : []), [undefined]);
  assertEquals((await run.result).text, "The password is hunter2.\nKeep hunter2 safe.");
});

Deno.test("Qoder: FileChanged fires for all files, for names in matchers, or for watchPaths", async () => {
  const seen = async (paths?: readonly string[], matcher?: string) => {
    const files: string[] = [];
    const receive: HookCallback = (input) => void ("file_path" in input && files.push(input.file_path));
    const config: HookConfig = {
      FileChanged: [{ matcher, hooks: [receive] }],
      ...(paths && { SessionStart: hooks(returningOutput({ watchPaths: paths })) }),
    };
    const writes = ["a.md", ".env", "docs/b.md"].map((path) => ["write_file", { path, content: "x" }] as const);
    const use = [claude_hooks(config), workspace(memoryFiles())];
    await agent({ model: scripted({ calls: writes }, "Done."), use }).run("Hi").result;
    return files.toSorted();
  };
  assertEquals(await seen(), ["/.env", "/a.md", "/docs/b.md"]);
  assertEquals(await seen(undefined, ".env|a.md"), ["/.env", "/a.md"]);
  assertEquals(await seen(["/docs", "/.env"]), ["/.env", "/docs/b.md"]);
});

Deno.test("context of Notification is in the next request, and the run waits for the hook", async () => {
  const log: string[] = [];
  const receive: HookCallback = async (input) => {
    await settled();
    log.push(input.hook_event_name);
    return { hookSpecificOutput: { hookEventName: "Notification", additionalContext: "They were asked." } };
  };
  const agent = hooked({ Notification: hooks(receive) }, { tools: [shell({ ask: true })] });
  const { result } = await agent.run().outcome;
  assertEquals([result.status, log], ["paused", ["Notification"]]);
  const { result: { messages } } = await agent.resume(result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(lines(messages).slice(1), ["call Bash", "ok ran ls", "turn They were asked.", "assistant Done."]);
  assertEquals(lines(agent.model.requests[1]?.messages ?? []).slice(1), [
    "call Bash",
    "ok ran ls",
    "turn They were asked.",
  ]);
});

// ── failures ──

Deno.test("a hook that fails has no opinion, and onError receives the error", async () => {
  const error = new Error("secret detail");
  const config = {
    PreToolUse: hooks(() => Promise.reject(error), returningOutput({ additionalContext: "Still here." })),
  };
  const { lines, events, errors } = await ran(config);
  assertEquals(lines, ["call Bash", "ok ran ls", "context Still here.", "assistant Done."]);
  assertEquals([warnings(events), errors], [["A hook of PreToolUse failed."], [error]]);
  assertEquals(JSON.stringify(events).includes("secret"), false);
});

for (const event of ["PreToolUse", "PermissionRequest", "UserPromptSubmit"] as const) {
  Deno.test(`a hook of ${event} with onFailure block blocks when it fails`, async () => {
    const fails: HookCallback = () => {
      throw new Error("broken");
    };
    const wrong = returning("yes" as never);
    for (const hook of [fails, wrong]) {
      const config = { [event]: [{ hooks: [hook], onFailure: "block" }] } as HookConfig;
      const { result, lines } = await ran(config, { tools: [shell({ ask: true })] });
      assertEquals(
        lines[1] ?? result.reason,
        event === "UserPromptSubmit" ? "A hook failed." : "denied A hook failed.",
      );
    }
  });
}

Deno.test("a hook of Stop that fails does not keep the agent going", async () => {
  const config = { Stop: [{ hooks: [() => Promise.reject(new Error("broken"))], onFailure: "block" as const }] };
  assertEquals((await ran(config)).result.status, "done");
});

Deno.test("SessionEnd fires after a stopped run, within the grace period", async () => {
  const log: string[] = [];
  const started = Promise.withResolvers<void>();
  const config: HookConfig = {
    SessionEnd: hooks((_, __, { signal }) => void log.push(`ended ${signal.aborted}`)),
    PreToolUse: hooks(() => {
      started.resolve();
      return new Promise(() => {});
    }),
  };
  const running = hooked(config).run();
  await started.promise;
  running.stop();
  assertEquals([(await running.outcome).result.status, log], ["aborted", ["ended false"]]);
});
