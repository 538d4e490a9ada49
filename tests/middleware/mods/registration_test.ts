import { assertEquals, assertThrows } from "@std/assert";
import { mods } from "@jizai/jizai/middleware/mods";
import { command, warnings } from "../../support/hooked.ts";
import { hook, type Loose, type LooseHook, type LooseOn, mod, modded, ran, reports } from "../../support/modded.ts";

const passing: LooseHook = (_$, e, next) => next(e);

for (
  const [name, register, reason] of [
    [
      "a pattern twice without a matcher",
      (on: LooseOn) => {
        on("session.start", passing);
        on("session.start", passing);
      },
      'Cannot register a hook at "session.start": the mod has one without a matcher',
    ],
    [
      "an invalid pattern",
      (on: LooseOn) => on("tool.c*", passing),
      'Cannot register a hook: expected the name of an event, "*", "prefix.*" or "!name", got "tool.c*"',
    ],
    [
      "!*",
      (on: LooseOn) => on("!*", passing),
      'Cannot register a hook: expected the name of an event, "*", "prefix.*" or "!name", got "!*"',
    ],
    [
      "no function",
      (on: LooseOn) => on("tool.call", { tool: "Bash" } as Loose),
      'Cannot register a hook at "tool.call": expected a function',
    ],
    [
      "a matcher that nests more than eight levels",
      (on: LooseOn) => on("tool.call", { a: { b: { c: { d: { e: { f: { g: { h: { i: 1 } } } } } } } } }, passing),
      "Cannot register a hook: its matcher must be at most 8 levels",
    ],
    [
      "a matcher with a function",
      (on: LooseOn) => on("tool.call", { tool: () => true }, passing),
      "Cannot register a hook: its matcher must be data and regular expressions, got a function",
    ],
    [
      ".catch() twice",
      (on: LooseOn) => (on("tool.call", passing).catch(passing) as Loose).catch(passing),
      'Cannot set .catch() at "tool.call": it was set before',
    ],
    [
      ".catch() at engine.create",
      (on: LooseOn) => on("engine.create", passing).catch(passing),
      'Cannot set .catch() at "engine.create": it has none',
    ],
    ["a rejection", () => Promise.reject(new Error("no file")), "no file"],
  ] as const
) {
  Deno.test(`a mod that registers ${name} is not loaded, and the others run`, async () => {
    const seen: string[] = [];
    const other = hook("tool.call", (_$, e, next) => {
      seen.push(e.tool);
      return next(e);
    }, { name: "other" });
    const outcome = await ran([mod(register), other]);
    assertEquals(seen, ["Bash"]);
    assertEquals(reports(outcome), [`Cannot load the mod "guard": ${reason}`]);
    assertEquals(warnings(outcome.events), ['The mod "guard" cannot be loaded.']);
  });
}

Deno.test("with failure: closed, a mod that cannot be loaded fails the run", async () => {
  const { result } = await ran([mod(() => Promise.reject(new Error("no file")))], { failure: "closed" });
  assertEquals([result.status, String(result.error)], ["failed", 'Error: Cannot load the mod "guard": no file']);
});

Deno.test("session.start may be registered twice with different matchers, and register() is awaited", async () => {
  const seen: string[] = [];
  const late = mod(async (on) => {
    await Promise.resolve();
    on("session.start", { isInteractive: false }, (_$, e, next) => {
      seen.push("first");
      return next(e);
    });
    on("session.start", { surface: null }, (_$, e, next) => {
      seen.push("second");
      return next(e);
    });
    on("session.start", { isInteractive: true }, (_$, e, next) => {
      seen.push("third");
      return next(e);
    });
  });
  const { errors } = await ran([late]);
  assertEquals([seen, errors], [["first", "second"], []]);
});

Deno.test("a hook may not call on(), nor .catch()", async () => {
  const outcome = await ran([
    mod((on) => {
      const registration = on("tool.call", (_$, e, next) => {
        registration.catch(passing);
        return next(e);
      });
      on("session.start", (_$, e, next) => {
        on("tool.check", passing);
        return next(e);
      });
    }),
  ]);
  assertEquals(reports(outcome), [
    'The mod "guard" failed at session.start: Cannot call on() in a hook: expected register() to call it',
    'The mod "guard" failed at tool.call: Cannot call .catch() in a hook: expected register() to call it',
  ]);
  assertEquals(outcome.lines[1], "ok ran ls");
});

Deno.test("register() receives the values of userConfig with their defaults, frozen", async () => {
  const received: unknown[] = [];
  const options = { word: "rm", list: ["a"] };
  const configured = mod((_on, options) => void received.push(options, Object.isFrozen(options)), {
    options,
    userConfig: { word: { required: true }, level: { default: 3 }, absent: {}, list: {} },
  });
  await ran([configured]);
  assertEquals(received, [{ word: "rm", level: 3, list: ["a"] }, true]);
});

Deno.test("mods() refuses mods that it cannot load, and options that it does not have", () => {
  const module = () => ({ register() {} });
  const failures = [
    () => mods({ name: "", module }),
    () => mods({ name: "a", module: { register() {} } }),
    () => mods({ name: "a", module, userConfig: { key: { required: true } } }),
    () => mods({ name: "a", module, tier: "core" as never }),
    () => mods([{ name: "a", module }, { name: "a", module }]),
    () => mods({ name: "a", module, extra: 1 } as never),
    () => mods([], { failure: "open" as never }),
    () => mods([], { other: 1 } as never),
  ];
  for (const failure of failures) assertThrows(failure, TypeError);
  mods({ name: "a", module: { register() {} }, shared: true });
});

Deno.test("a module is evaluated anew for each run, and shared only on request", async () => {
  const counts: number[] = [];
  const counting = () => {
    let count = 0;
    return {
      register: (on: Loose) =>
        on("tool.call", (_$: Loose, e: Loose, next: Loose) => {
          counts.push(++count);
          return next(e);
        }),
    };
  };
  for (const given of [{ name: "a", module: counting }, { name: "a", module: counting(), shared: true }]) {
    await ran([given]);
    const agent = modded([given]);
    await agent.run().outcome;
    await agent.run().outcome.catch(() => {});
  }
  assertEquals(counts, [1, 1, 1, 2]);
});

Deno.test("with lifetime: session, the runs of a session share the variables of a module", async () => {
  const { agent } = await import("@jizai/jizai");
  const { scripted } = await import("@jizai/jizai/model/scripted");
  const seen: string[] = [];
  const counting = mod((on) => {
    const prompts: string[] = [];
    on("prompt.submit", (_$, e, next) => {
      prompts.push(e.text);
      seen.push(prompts.join());
      return next(e);
    });
  });
  const assistant = agent({
    model: scripted("1", "2", "3"),
    use: [mods(counting, { lifetime: "session" })],
  });
  const { session } = await assistant.run("a").result;
  await assistant.run({ prompt: "b", session }).result;
  await assistant.run("c").result;
  assertEquals(seen, ["a", "a,b", "c"]);
});

const matchers: readonly (readonly [string, object, readonly string[]])[] = [
  ["a text", { tool: "Bash" }, ["ls -l", "rm x"]],
  ["a text that differs", { tool: "bash" }, []],
  ["any of a list", { tool: ["Read", "Bash"], command: ["rm x", "cat"] }, ["rm x"]],
  ["a regular expression", { command: /^ls/ }, ["ls -l"]],
  ["a global regular expression", { command: /s/g }, ["ls -l"]],
  ["a list with a regular expression", { command: ["none", /rm/] }, ["rm x"]],
  ["all of its keys", { tool: "Bash", command: /x$/ }, ["rm x"]],
  ["an absent key", { agentId: undefined }, ["ls -l", "rm x"]],
  ["a key of the prototype", { toString: /./ }, []],
  ["a partial object", { env: { a: { b: 1 } } }, ["ls -l"]],
  ["an element of a list", { tags: "x" }, ["rm x"]],
  ["an element of a list by any of a list", { tags: ["z", "x"] }, ["rm x"]],
  ["an element of a list of objects", { env: { list: { id: 2 } } }, ["ls -l"]],
  ["a number", { env: { n: 5 } }, ["ls -l"]],
  ["a number as a text", { env: { n: /^5$/ } }, ["ls -l"]],
  ["no object as a text", { env: /./ }, []],
];

for (const [name, matcher, expected] of matchers) {
  Deno.test(`a matcher matches ${name}`, async () => {
    const seen: string[] = [];
    const matched = mod((on) =>
      on("tool.call", matcher, (_$, e, next) => {
        seen.push(e.command);
        return next(e);
      })
    );
    const first = { command: "ls -l", env: { a: { b: 1, c: 2 }, n: 5, list: [{ id: 1 }, { id: 2 }] }, tags: ["y"] };
    const calls = [{ ...command("a"), input: first }, {
      ...command("b"),
      input: { command: "rm x", tags: ["x", "y"] },
    }];
    const { z, tool } = { z: await import("zod"), tool: (await import("@jizai/jizai")).tool };
    const bash = tool({
      name: "Bash",
      description: "",
      input: z.looseObject({ command: z.string() }),
      execute: () => "",
    });
    await ran([matched], { calls, tools: [bash] });
    assertEquals(seen, expected);
  });
}

const patterns: readonly (readonly [string, readonly string[]])[] = [
  ["tool.call", ["tool.call"]],
  ["tool.*", ["tool.describe", "tool.call", "tool.check"]],
  ["*", [
    ...["session.start", "prompt.context", "prompt.submit", "turn.start", "prompt.compose", "prompt.section"],
    ...["tool.describe", "turn.step", "tool.call", "tool.check", "prompt.compose", "turn.step"],
    ...["turn.complete", "session.end"],
  ]],
  ["!tool.*", [
    ...["session.start", "prompt.context", "prompt.submit", "turn.start", "prompt.compose", "prompt.section"],
    ...["turn.step", "prompt.compose", "turn.step", "turn.complete", "session.end"],
  ]],
];

for (const [pattern, expected] of patterns) {
  Deno.test(`the pattern ${pattern} selects events in the order of a run`, async () => {
    const seen: string[] = [];
    const { errors } = await ran([
      hook(pattern, (_$, e, next) => {
        seen.push(next.event);
        return next(e);
      }),
    ]);
    assertEquals([seen, errors], [expected, []]);
  });
}

Deno.test("events that do not occur on a server are reported once each, and glob patterns are not", async () => {
  const silent = (name: string) =>
    mod((on) => {
      for (const event of ["ui.render", "command.run", "tool.nope", "ui.*", "!prompt.edit", "ui.log", "classic.Stop"]) {
        on(event, passing);
      }
    }, { name });
  const { events } = await ran([silent("a"), silent("b")]);
  assertEquals(warnings(events), [
    "Hooks of ui.render never run: not supported on a server, since there is no screen. Mods with such hooks: a, b.",
    "Hooks of command.run never run: not supported on a server, since no person types. Mods with such hooks: a, b.",
    "Hooks of tool.nope never run: the event is not known. Mods with such hooks: a, b.",
    "Hooks of classic.Stop never run: the option classic is not set. Mods with such hooks: a, b.",
  ]);
});

Deno.test("plugin.register is judged by the mods that are loaded before", async () => {
  const seen: unknown[] = [];
  const judge = hook("plugin.register", (_$, e, next) => {
    seen.push(e);
    return e.uses.calls.includes("process.run") ? { refuse: "no processes" } : next(e);
  }, { name: "judge", tier: "prepend" });
  const log: string[] = [];
  const logging = (name: string, calls: readonly string[]) =>
    hook("tool.call", (_$, e, next) => {
      log.push(name);
      return next(e);
    }, { name, calls, version: "1.0.0" });
  const { events } = await ran([logging("good", ["ui.log"]), logging("bad", ["process.run"]), judge]);
  assertEquals(log, ["good"]);
  assertEquals(seen[0], {
    ...{ name: "good", tier: "user", root: "/", version: "1.0.0", provenance: "good@inline" },
    uses: { events: ["tool.call"], calls: ["ui.log"] },
  });
  assertEquals(warnings(events), ['The mod "bad" is not loaded: no processes']);
});

Deno.test("engine.create adds a noun to $, whose calls other mods see, and replaces none", async () => {
  const seen: unknown[] = [];
  const voice = mod((on) =>
    on("engine.create", async (_$, e, next) => {
      const built = await next(e);
      seen.push(e.plugins, typeof built.ui.log);
      return { ...built, voice: { speak: ({ text }: Loose) => `spoke ${text}` }, env: { get: () => "stolen" } };
    }), { name: "voice" });
  const guard = hook("voice.speak", (_$, e, next) => next({ ...e, text: `${e.text}!` }), { name: "guard" });
  const user = hook(
    "tool.call",
    async ($) => ({ result: `${await $.voice.speak({ text: "hi" })} ${await $.env.get("A")}` }),
    {
      name: "user",
    },
  );
  const { lines } = await ran([voice, guard, user]);
  assertEquals([lines[1], seen], ["ok spoke hi! undefined", [["voice", "guard", "user"], "function"]]);
});
