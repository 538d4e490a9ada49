import { agent, memory } from "@jizai/jizai";
import { type Mod, mods, type ModsOptions } from "@jizai/jizai/middleware/mods";
import { scripted } from "@jizai/jizai/model/scripted";
import { memoryFiles } from "@jizai/jizai/middleware/workspace";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { advanceUntilSettled } from "../../support/fake_time.ts";
import { notices } from "../../support/hooked.ts";
import { hook, type Loose, mod, modded, ran, reports } from "../../support/modded.ts";

/** Runs code with `$` at the start of a prompt, and returns the value or the message of its error. */
async function using(code: ($: Loose) => unknown, options: ModsOptions = {}, others: readonly Mod[] = []) {
  const found: Loose = {};
  const calling = hook("turn.start", async ($, e, next) => {
    try {
      found.value = await code($);
    } catch (error) {
      found.error = (error as Error).message;
    }
    return next(e);
  }, { name: "caller" });
  const outcome = await ran([...others, calling], { calls: [], ...options });
  return { ...found, ...outcome, notices: notices(outcome.events) };
}

Deno.test("$ is frozen, and has the name and the root of the mod", async () => {
  const { value } = await using((
    $,
  ) => [Object.isFrozen($), Object.isFrozen($.ui), $.plugin.name, $.plugin.root, $.nope]);
  assertEquals(value, [true, true, "caller", "/", undefined]);
});

Deno.test("an outer hook answers and denies a call of $, and the caller's own hooks are skipped only if they call", async () => {
  const answering = hook("fs.read", (_$, e) => ({ value: `file ${e.path} as ${e.as}` }));
  assertEquals((await using(($) => $.fs.read("a.md"), {}, [answering])).value, "file a.md as text");
  const denying = hook("fs.read", () => ({ deny: "Secret." }));
  assertEquals((await using(($) => $.fs.read("a.md"), {}, [denying])).error, "Secret.");
  const broken = hook("fs.read", () => ({ text: "x" }));
  assertEquals((await using(($) => $.fs.exists("a.md"), {}, [broken])).value, false);
});

Deno.test("a call of $ skips the hook that makes it, and none of the mod's others", async () => {
  const seen: Loose[] = [];
  const all = mod((on) => {
    on("*", async ($, e, next) => {
      seen.push(["star", next.event, next.origin.plugin]);
      if (next.event === "turn.start") await $.env.get("A");
      return next(e);
    });
    on("env.get", (_$, e, next) => {
      seen.push(["env", e.name, next.origin.plugin, next.origin.tier]);
      return next(e);
    });
  }, { name: "own" });
  const other = hook("*", (_$, e, next) => {
    if (next.event === "env.get") seen.push(["other", next.origin.plugin]);
    return next(e);
  }, { name: "other" });
  await ran([all, other], { calls: [] });
  const calls = seen.filter(([kind, event]: Loose) => kind !== "star" || event === "env.get");
  assertEquals(calls, [["env", "A", "own", "user"], ["other", "own"]]);
});

Deno.test("$.state keeps JSON for the session, with versions", async () => {
  const assistant = (seen: Loose[]) =>
    agent({
      model: scripted("1", "2"),
      use: [mods(hook("turn.start", async ($, e, next) => {
        const ref = { plugin: "guard", key: "count" };
        const { value = 0, version } = await $.state.get(ref);
        seen.push(value, version, await $.state.set(ref, value + 1), await $.state.set(ref, 9, { ifVersion: 0 }));
        seen.push(await $.state.get({ ...ref, id: "x" }));
        return next(e);
      }))],
    });
  const seen: Loose[] = [];
  const store = memory();
  const first = assistant(seen);
  await first.run({ prompt: "a", session: "s", store }).result;
  await first.run({ prompt: "b", session: "s", store }).result;
  assertEquals(seen, [
    ...[0, 0, { isSet: true, version: 1 }, { isSet: false, version: 1 }, { version: 0 }],
    ...[1, 1, { isSet: true, version: 2 }, { isSet: false, version: 2 }, { version: 0 }],
  ]);
});

Deno.test("$.store keeps JSON for a tenant and a mod, over sessions", async () => {
  const seen: Loose[] = [];
  const storing = (name: string) =>
    hook("turn.start", async ($, e, next) => {
      await $.store.set("at", new Date(0));
      await $.store.set("list", { a: [1, undefined], b: undefined });
      seen.push(await $.store.keys(), await $.store.get("at"), await $.store.get("list"), await $.store.get("absent"));
      await $.store.delete("at");
      await $.store.set("count", (await $.store.get("count") ?? 0) + 1);
      seen.push(await $.store.get("count"), await $.store.keys());
      await $.store.set("f", () => {}).catch((error: Error) => seen.push(error.message));
      return next(e);
    }, { name });
  const assistant = agent({ model: scripted("1", "2", "3"), use: [mods(storing("a"))] });
  await assistant.run({ prompt: "a", owner: "x" }).result;
  await assistant.run({ prompt: "b", owner: "x" }).result;
  await assistant.run({ prompt: "b", owner: "y" }).result;
  const after = (count: number) => [count, ["list", "count"], "expected plain data, got a function"];
  const first = [["at", "list"], "1970-01-01T00:00:00.000Z", { a: [1, null] }, undefined, ...after(1)];
  assertEquals(seen.slice(0, 7), first);
  assertEquals(seen.slice(7, 9), [["list", "count", "at"], "1970-01-01T00:00:00.000Z"]);
  assertEquals(seen.slice(11, 13), [2, ["list", "count"]]);
  assertEquals(seen.slice(14, 21), first);
});

Deno.test("timers of $.clock end with the run, and sleep rejects on its signal", async () => {
  using time = new FakeTime();
  const log: string[] = [];
  const ticking = hook("turn.start", async ($, e, next) => {
    const started = await $.clock.now();
    $.clock.every(1_000, () => void log.push("tick"));
    $.clock.after(500, () => void log.push("after"));
    const cancelled = $.clock.after(500, () => void log.push("cancelled"));
    cancelled.cancel();
    await $.clock.sleep(2_500);
    log.push(`slept ${await $.clock.now() - started}`);
    const aborted = new AbortController();
    aborted.abort(new Error("enough"));
    await $.clock.sleep(1_000, { signal: aborted.signal }).catch((error: Error) => log.push(error.message));
    return next(e);
  });
  await advanceUntilSettled(time, ran([ticking], { calls: [] }));
  await time.tickAsync(10_000);
  assertEquals(log, ["after", "tick", "tick", "slept 2500", "enough"]);
});

Deno.test("$.http.fetch reaches the hosts of the option, and no other", async () => {
  const sent: Loose[] = [];
  const send = (url: string, init: RequestInit) => {
    sent.push([url, init.method, init.redirect]);
    return Promise.resolve(new Response("body", { status: 201, headers: { a: "b" } }));
  };
  const options = { hosts: ["api.example.com"], fetch: send as typeof fetch };
  const { value } = await using(($) => $.http.fetch("https://api.example.com/x", { method: "POST" }), options);
  assertEquals([value.status, value.ok, value.headers.a, value.text], [201, true, "b", "body"]);
  assertEquals(sent, [["https://api.example.com/x", "POST", "manual"]]);
  for (
    const [url, init] of [
      ["https://evil.com/", {}],
      ["file:///etc/passwd", {}],
      ["https://api.example.com/", { auth: "handle" }],
      ["http://api.example.com/", { socketPath: "/a" }],
    ] as const
  ) {
    const { error } = await using(($) => $.http.fetch(url, init), options);
    assertEquals(error?.startsWith(`Cannot call $.http.fetch("${url}"):`), true);
  }
});

Deno.test("$.model asks the models of the option, in the form of the dialect", async () => {
  const small = () => ({ ...scripted("blue"), id: "haiku" });
  const models = (id: string) => id === "haiku" ? small() : undefined;
  const ask = ($: Loose) => $.model.complete({ model: "haiku", prompt: "Which colour?" });
  const usage = {
    input_tokens: 1,
    output_tokens: 1,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: 0,
    model: "haiku",
  };
  assertEquals((await using(ask, { models })).value, { isAnswered: true, text: "blue", usage });
  assertEquals((await using(ask, { models, dialect: "2.1.277" })).value, "blue");
  assertEquals((await using(ask)).value, { isAnswered: false, reason: 'there is no model "haiku"' });
  const classify = ($: Loose) => $.model.classify("the sky", ["red", "blue"], { model: "haiku" });
  assertEquals((await using(classify, { models })).value, "blue");
});

Deno.test("$.session and $.tool tell what a server has", async () => {
  const { value, result } = await using(async ($) => [
    await $.session.id(),
    await $.session.cwd(),
    await $.session.root(),
    await $.session.model(),
    await $.session.surfaces(),
    await $.session.repo(),
    await $.session.authorize(),
    await $.session.messages(),
    (await $.session.version()).version.split(".").length,
  ], { cwd: "/work" });
  assertEquals(value, [
    ...[result.session, "/work", "/work", "scripted", [], null, null],
    ...[[{ role: "user", text: "Hi", toolUses: [] }], 3],
  ]);
});

Deno.test("$.session.messages() pairs calls with their results", async () => {
  const seen: Loose[] = [];
  await ran([
    hook("turn.step", async function* ($, e, next) {
      if (e.index === 1) seen.push(await $.session.messages());
      return yield* next(e);
    }),
  ]);
  assertEquals(seen[0], [
    { role: "user", text: "Hi", toolUses: [] },
    {
      role: "assistant",
      text: "",
      toolUses: [{ tool_use_id: "a", tool: "Bash", input: { command: "ls" }, result: "ran ls", text: "ran ls" }],
    },
    { role: "user", text: "", toolUses: [], toolResults: [{ tool_use_id: "a", text: "ran ls", isError: false }] },
  ]);
});

Deno.test("a tool that a mod registers at session.start is in the first request, and its calls are the mod's to answer", async () => {
  const serving = (answers: boolean) =>
    mod((on) => {
      on("session.start", async ($, e, next) => {
        await $.tool.register({
          name: "weather",
          description: "Weather.",
          inputSchema: { type: "object", properties: {} },
        });
        return next(e);
      });
      if (answers) on("tool.call", { tool: "mcp__sky__weather" }, (_$, e) => ({ result: `Sun in ${e.city}` }));
    }, { name: "sky" });
  const calls = [{ id: "a", name: "mcp__sky__weather", input: { city: "Rome" } }];
  const agentOf = modded([serving(true)], { calls });
  assertEquals((await agentOf.run().outcome).lines[1], "ok Sun in Rome");
  assertEquals(agentOf.model.requests[0]?.tools.map(({ name }) => name), ["Bash", "mcp__sky__weather"]);
  assertEquals((await ran([serving(false)], { calls })).lines[1], "error mcp__sky__weather failed.");
});

Deno.test("$.prompt.submit continues after the answer, past the hooks of other mods", async () => {
  const seen: Loose[] = [];
  let submitted = false;
  const submitting = hook("turn.step", async function* ($, e, next) {
    if (!submitted) await $.prompt.submit({ text: "And now?" });
    submitted = true;
    return yield* next(e);
  }, { name: "submitting" });
  const looking = hook("prompt.submit", (_$, e, next) => {
    seen.push([e.text, e.origin, next.origin.plugin]);
    return next(e);
  }, { name: "looking" });
  const model = scripted("One.", "Two.");
  const { messages } = await agent({ model, use: [mods([looking, submitting])] }).run("Hi").result;
  assertEquals(messages.map((message: Loose) => message.parts[0].text), ["Hi", "One.", "And now?", "Two."]);
  assertEquals(seen, [
    ["Hi", { kind: "sdk" }, "engine"],
    ["And now?", { kind: "plugin", name: "submitting" }, "submitting"],
  ]);
});

Deno.test("$.turn.abort ends the run", async () => {
  const aborting = hook("turn.start", ($, e, next) => $.turn.abort({ turnId: e.turnId }).then(() => next(e)));
  const { result } = await ran([aborting]);
  assertEquals([result.status, result.reason], ["cancelled", 'The mod "guard" aborted the turn.']);
});

Deno.test("texts for the person are notices with the mod's name, and debug lines go to the option", async () => {
  const debug: string[] = [];
  const { notices: shown } = await using(async ($) => {
    $.ui.log("one");
    await $.ui.toast("two", { timeoutMs: 5 });
    await $.ui.status("three");
    await $.ui.status(undefined);
    await $.ui.log("hidden", { to: "debug" });
  }, { debug: (mod, text) => void debug.push(`${mod} ${text}`) });
  assertEquals([shown, debug], [["caller: one", "caller: two", "caller: three"], ["caller hidden"]]);
});

Deno.test("$.ui.ask rejects, or pauses the run and gives the reply to the same question", async () => {
  const asking = hook("tool.call", async ($, e, next) => {
    try {
      const answer = await $.ui.ask("Really?", ["Yes", "No"]);
      return answer === "Yes" ? next(e) : { deny: `They said ${answer}.` };
    } catch {
      return { deny: "There is no person." };
    }
  });
  assertEquals((await ran([asking])).lines[1], "denied There is no person.");
  const assistant = modded([asking], { ask: true });
  const first = await assistant.run().outcome;
  assertEquals([first.result.status, first.result.questions[0]?.questions], ["paused", ["Really?"]]);
  const second = await assistant.resume(first.result.session, [{ type: "reply", text: "Yes" }]).outcome;
  assertEquals(second.lines[1], "ok ran ls");
});

Deno.test("what needs a screen or a machine is off, and rejects with its name", async () => {
  const { value } = await using(async ($) => [
    await $.ui.open({ id: "a" }),
    await $.ui.panes(),
    await $.ui.close({ id: "a" }),
    await $.fs.exists("a"),
    await $.fs.list("."),
    await $.fs.ancestors({ names: ["A.md"] }),
    await $.env.get("HOME"),
    await $.settings.read(),
    await $.config.list(),
    await $.command.register({ name: "x" }),
    await $.telemetry.log("x"),
  ]);
  assertEquals(value, [
    { isPlaced: false },
    [],
    undefined,
    false,
    [],
    [],
    undefined,
    {},
    [],
    { command: "x" },
    undefined,
  ]);
  for (const call of ["process.run", "audio.play", "mcp.call", "env.set", "agent.spawn", "tool.call", "ui.blit"]) {
    const [noun = "", method = ""] = call.split(".");
    const { error } = await using(($) => $[noun][method]({}));
    assertEquals(error?.startsWith(`Cannot call $.${call}():`), true);
  }
  const { error } = await using(($) => $.fs.read("a"));
  assertEquals(error?.includes("ENOENT"), true);
});

Deno.test("options give mods variables, settings and files", async () => {
  const { value } = await using(async ($) => {
    await $.fs.write("notes/a.md", "hi");
    return [
      await $.env.get("A"),
      await $.settings.read(),
      await $.fs.read("/work/notes/a.md"),
      (await $.fs.read("notes/a.md", { as: "bytes" })).base64,
      (await $.fs.list("notes")).map(({ name, kind }: Loose) => [name, kind]),
      (await $.fs.stat("notes")).kind,
    ];
  }, { env: { A: "1" }, settings: { a: 1 }, files: memoryFiles(), cwd: "/work" });
  assertEquals(value, ["1", { a: 1 }, "hi", btoa("hi"), [["a.md", "file"]], "dir"]);
});

Deno.test("values cross as plain data", async () => {
  const { error } = await using(($) => $.store.set("a", { f: () => {} }));
  assertEquals(error, "expected plain data, got a function");
  const shared = { a: [1] };
  const { value } = await using(async ($) => {
    await $.state.set({ key: "x" }, shared);
    shared.a.push(2);
    const first = (await $.state.get({ key: "x" })).value;
    first.a.push(3);
    return (await $.state.get({ key: "x" })).value;
  });
  assertEquals(value, { a: [1] });
});

Deno.test("a call of $ whose promise is dropped reports no unhandled rejection", async () => {
  const outcome = await using(($) => void $.process.run(["ls"]));
  assertEquals([outcome.result.status, reports(outcome)], ["done", []]);
});

Deno.test("testMiddleware() finds nothing wrong with mods()", async () => {
  const passing = mod((on) => {
    on("*", (_$, e, next) => next(e));
    on("tool.call", async (_$, e, next) => await next(e));
    on("turn.step", async function* (_$, e, next) {
      return yield* next(e);
    });
  });
  await testMiddleware(() => mods(passing));
  await testMiddleware(() => mods([]));
});
