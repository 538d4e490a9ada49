import { agent, allow, ask, deny, type Middleware, text, tool } from "@jizai/jizai";
import { permissions, type PermissionsOptions, type Rule } from "@jizai/jizai/middleware/permissions";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assert, assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import { lines } from "../support/transcript_lines.ts";

/** Creates a tool. If its name ends with "!", the tool itself asks. */
function shell(name: string) {
  return tool({
    name: name.replace("!", ""),
    description: "Runs a command",
    input: z.object({ command: z.string() }),
    ask: name.endsWith("!"),
    execute: ({ command }) => `Ran ${command}.`,
  });
}

/** Calls each tool once. Returns its result, or the question. */
async function decided(names: readonly string[], ...use: readonly Middleware[]): Promise<string[]> {
  const tools = names.map(shell);
  const calls = tools.map(({ name }) => ({ id: name, name, input: { command: "ls" } }));
  const { events, result } = agent({ model: scripted({ calls }, "Done."), tools, use }).run("Go");
  const asked = new Map((await result).questions.map(({ callId, questions }) => [callId, questions]));
  const all = await Array.fromAsync(events);
  const results = new Map(
    all.flatMap((event) =>
      event.type === "tool.finished" ? [[event.call, lines([{ role: "tool", results: [event.result] }])[0]]] : []
    ),
  );
  return tools.map(({ name }) => results.get(name) ?? `asks ${asked.get(name)?.join(" ")}`);
}

/** Creates a guard with a fixed decision. */
function guard(approval: ReturnType<typeof allow>): Middleware {
  return { name: "guard", approval: () => Promise.resolve(approval) };
}

Deno.test("permissions() obeys the laws of middleware", async () => {
  await testMiddleware(() => permissions({ deny: ["no_*"], ask: ["maybe_*"], allow: ["yes_*"] }));
});

Deno.test("permissions() allows, asks and denies by name", async () => {
  const rules = permissions({ allow: ["read"], ask: ["write"], deny: ["remove"] });
  assertEquals(await decided(["read!", "write", "remove", "other", "others!"], rules), [
    "ok Ran ls.",
    "asks May write run?",
    "denied remove is not permitted here.",
    "ok Ran ls.",
    "asks Run others?",
  ]);
});

Deno.test("permissions() checks deny, then ask, then allow, whatever their order in the options", async () => {
  const rules = permissions({ allow: ["*"], ask: ["w*", "r*"], deny: ["re*"] });
  assertEquals(await decided(["remove", "write", "list"], rules), [
    "denied remove is not permitted here.",
    "asks May write run?",
    "ok Ran ls.",
  ]);
});

Deno.test("permissions() throws for a name that no tool can have", () => {
  for (const name of ["delete_.*", "delete|drop", "Bash(rm *)", "a b", "löschen", ""]) {
    const error = `Cannot create permissions(): no tool can have the name "${name}"; expected A-Z a-z 0-9 _ - and *`;
    for (const rule of [name, { tool: name }]) assertThrows(() => permissions({ deny: [rule] }), TypeError, error);
  }
});

Deno.test("permissions() throws for an unknown `otherwise`", () => {
  const error = 'Cannot create permissions(): `otherwise` is "denied"; expected "allow", "ask" or "deny"';
  assertThrows(() => permissions({ otherwise: "denied" as never }), TypeError, error); // as it comes from a file
});

Deno.test("permissions() throws for options and rules from JSON that it cannot understand", () => {
  const refused: readonly (readonly [unknown, string])[] = [
    [undefined, "got Undefined; expected an object with deny, ask, allow, otherwise"],
    [{ denied: ["rm"] }, 'there is no option "denied"; expected one of deny, ask, allow, otherwise'],
    [{ deny: "rm" }, '`deny` is "rm"; expected a list of rules'],
    [{ deny: null }, "`deny` is null; expected a list of rules"],
    [
      { allow: [{ name: "rm" }] },
      'a rule of `allow`: there is no option "name"; expected one of tool, when, why',
    ],
    [{ allow: [null] }, "a rule of `allow`: got Null; expected an object with tool, when, why"],
    [{ allow: [/^rm$/] }, "a rule of `allow`: got RegExp; expected an object with tool, when, why"],
    [
      { allow: [{ tool: "rm", when: undefined }] },
      "`when` of a rule of `allow` is undefined; expected a function",
    ],
    [{ deny: [{ tool: "rm", why: 5 }] }, "`why` of a rule of `deny` is 5; expected a text"],
    [{ ask: [{ why: null }] }, "`why` of a rule of `ask` is null; expected a text"],
    [{ allow: [{ tool: undefined }] }, 'no tool can have the name "undefined"; expected A-Z a-z 0-9 _ - and *'],
    [{ deny: [{ tool: null }] }, 'no tool can have the name "null"; expected A-Z a-z 0-9 _ - and *'],
    [{ deny: [{ tool: ["rm"] }] }, 'no tool can have the name "rm"; expected A-Z a-z 0-9 _ - and *'],
    [{ allow: [{ tool: "rm", when: null }] }, "`when` of a rule of `allow` is null; expected a function"],
  ];
  for (const [options, error] of refused) {
    const create = () => permissions(options as never); // as it comes from a file
    assertThrows(create, TypeError, `Cannot create permissions(): ${error}`);
  }
});

Deno.test("permissions() matches * with any characters, and everything else literally", async () => {
  const denies = async (rule: Rule, ...names: readonly string[]) => {
    const outcome = await decided(names, permissions({ deny: [rule] }));
    return names.filter((_, index) => outcome[index]?.startsWith("denied"));
  };
  const names = ["delete", "delete_all", "undelete", "DELETE", "de-lete", "d"];
  assertEquals(await denies("delete", ...names), ["delete"]);
  assertEquals(await denies("delete*", ...names), ["delete", "delete_all"]);
  assertEquals(await denies("*delete", ...names), ["delete", "undelete"]);
  assertEquals(await denies("d*l*e", ...names), ["delete", "de-lete"]);
  assertEquals(await denies("d*e*e", ...names), ["delete", "de-lete"]);
  assertEquals(await denies("*et**e*", ...names), ["delete", "delete_all", "undelete", "de-lete"]);
  assertEquals(await denies("d*d", ...names), []);
  assertEquals(await denies("*", ...names), names);
  assertEquals(await denies({}, ...names), names);
});

Deno.test("a rule with many * takes linear time", async () => {
  const name = "a".repeat(64);
  const pattern = `${"*a".repeat(500)}*b`;
  const start = performance.now();
  for (let turn = 0; turn < 100; turn++) {
    assertEquals(await decided([name], permissions({ deny: [pattern, `${"a*".repeat(40)}b`] })), ["ok Ran ls."]);
  }
  assert(performance.now() - start < 10_000, "seconds, where backtracking takes years");
});

Deno.test("permissions() decides other calls by `otherwise`, or leaves them to later guards", async () => {
  const outcome = (otherwise?: PermissionsOptions["otherwise"]) =>
    decided(["read", "other", "others!"], permissions({ allow: ["read"], ...(otherwise && { otherwise }) }));
  assertEquals(await outcome(), ["ok Ran ls.", "ok Ran ls.", "asks Run others?"]);
  assertEquals(await outcome("allow"), ["ok Ran ls.", "ok Ran ls.", "ok Ran ls."]);
  assertEquals(await outcome("ask"), ["ok Ran ls.", "asks May other run?", "asks May others run? Run others?"]);
  assertEquals(await outcome("deny"), [
    "ok Ran ls.",
    "denied other is not permitted here.",
    "denied others is not permitted here.",
  ]);
});

Deno.test("permissions() calls `when` with the input and the context, and awaits it", async () => {
  const remote = tool({
    name: "remote",
    description: "",
    input: z.object({ host: z.string() }),
    execute: ({ host }, { vars }) => `${JSON.stringify(vars)} at ${host}`,
  });
  const hosts = z.object({ host: z.string() });
  const use = [permissions<{ user: string }>({
    deny: [{ tool: "remote", when: async (input) => await Promise.resolve(hosts.parse(input).host === "prod") }],
    allow: [{ tool: "remote", when: (_, { vars }) => vars.user === "root" }],
    otherwise: "deny",
  })];
  const outcome = async (user: string, host: string) => {
    const model = scripted({ calls: [["remote", { host }]] }, "Done.");
    const { messages } = await agent({ model, tools: [remote], use }).run({ prompt: "Go", vars: { user } }).result;
    return lines(messages)[2];
  };
  assertEquals(await outcome("root", "test"), `ok {"user":"root"} at test`);
  assertEquals(await outcome("root", "prod"), "denied remote is not permitted here.");
  assertEquals(await outcome("guest", "test"), "denied remote is not permitted here.");
});

Deno.test("permissions() sends the reason to the model, and the question to the person", async () => {
  const rules = permissions({
    deny: [{ tool: "remove", why: "Nothing is removed on Fridays." }],
    ask: [{ tool: "write", why: "It costs money. Go on?" }],
  });
  assertEquals(await decided(["remove", "write"], rules), [
    "denied Nothing is removed on Fridays.",
    "asks It costs money. Go on?",
  ]);
});

Deno.test("permissions() denies a call if a rule throws", async () => {
  const when = () => {
    throw new Error("no such table");
  };
  for (const decides of ["allow", "ask", "deny"] as const) {
    assertEquals(await decided(["read"], permissions({ [decides]: [{ when }] })), ["denied A guard failed."]);
  }
});

Deno.test("an allow rule answers the question of a later guard, but not its denial", async () => {
  const rules = permissions({ allow: ["*"] });
  assertEquals(await decided(["read"], rules, guard(ask("Sure?"))), ["ok Ran ls."]);
  assertEquals(await decided(["read"], rules, guard(deny("Never."))), ["denied Never."]);
});

Deno.test("an allow rule does not answer the question of an earlier guard", async () => {
  const rules = permissions({ allow: ["*"] });
  assertEquals(await decided(["read!"], guard(ask("Sure?")), rules), ["asks Sure?"]);
  assertEquals(await decided(["read!"], guard(deny("Never.")), rules), ["denied Never."]);
});

Deno.test("ask and deny rules apply even if other guards allow", async () => {
  const rules = permissions({ ask: ["write"], deny: ["remove"] });
  const outcome = ["asks May write run?", "denied remove is not permitted here."];
  assertEquals(await decided(["write", "remove"], rules, guard(allow())), outcome);
  assertEquals(await decided(["write", "remove"], guard(allow()), rules), outcome);
});

Deno.test("permissions() checks the final input and the final name", async () => {
  const rules = permissions({ deny: ["remove", { when: (input) => JSON.stringify(input).includes("rm") }] });
  const change = (change: { name?: string; input?: unknown }): Middleware => ({
    name: "change",
    tool: (_, next) => next(change),
  });
  assertEquals(await decided(["read", "remove"], rules, change({ input: { command: "rm" } })), [
    "denied read is not permitted here.",
    "denied remove is not permitted here.",
  ]);
  assertEquals(await decided(["read", "remove"], change({ name: "read" }), rules), ["ok Ran ls.", "ok Ran ls."]);
  assertEquals(await decided(["read", "remove"], rules, change({ name: "remove" })), [
    "denied remove is not permitted here.",
    "denied remove is not permitted here.",
  ]);
});

Deno.test("permissions() checks an input that another guard edited, and keeps the edit", async () => {
  const safe: Middleware = { name: "safe", approval: () => Promise.resolve(allow({ input: { command: "ls -l" } })) };
  const when = (command: string) => (input: unknown) => JSON.stringify(input) === JSON.stringify({ command });
  const deny = permissions({ deny: [{ when: when("ls -l") }] });
  const allowing = permissions({ allow: ["*"] });
  const asking = permissions({ ask: [{ when: when("ls -l"), why: "Long?" }, { when: when("ls"), why: "Short?" }] });
  for (const order of [<T>(a: T, b: T) => [a, b], <T>(a: T, b: T) => [b, a]]) {
    assertEquals(await decided(["read"], ...order(deny, safe)), ["denied read is not permitted here."]);
    assertEquals(await decided(["read!"], ...order(allowing, safe)), ["ok Ran ls -l."]);
    assertEquals(await decided(["read"], ...order(asking, safe)), ["asks Long?"]);
  }
});

Deno.test("permissions() checks a call that a hook answers", async () => {
  const cache: Middleware = { name: "cache", tool: () => Promise.resolve(text("Cached.")) };
  const rules = permissions({ deny: ["remove"], ask: ["write"] });
  const outcome = ["denied remove is not permitted here.", "asks May write run?", "ok Cached."];
  assertEquals(await decided(["remove", "write", "read"], rules, cache), outcome);
  assertEquals(await decided(["remove", "write", "read"], cache, rules), outcome);
});

Deno.test("permissions() runs again after a person's answer, and still denies", async () => {
  let strict = false;
  const assistant = agent({
    model: scripted({ calls: [["read", { command: "ls" }]] }, "Done."),
    tools: [shell("read")],
    use: [permissions({ ask: ["*"], deny: [{ when: () => strict }] })],
  });
  const { session } = await assistant.run("Go").result;
  strict = true;
  const { messages } = await assistant.resume({ session, answers: [{ callId: "call_1", type: "approve" }] }).result;
  assertEquals(lines(messages), ["user Go", "call read", "denied read is not permitted here.", "assistant Done."]);
});

Deno.test("permissions() lets an approved call run", async () => {
  const assistant = agent({
    model: scripted({ calls: [["read", { command: "ls" }]] }, "Done."),
    tools: [shell("read")],
    use: [permissions({ ask: ["*"] })],
  });
  const { session } = await assistant.run("Go").result;
  const { messages } = await assistant.resume({ session, answers: [{ callId: "call_1", type: "approve" }] }).result;
  assertEquals(lines(messages), ["user Go", "call read", "ok Ran ls.", "assistant Done."]);
});

Deno.test("permissions() without rules decides nothing", async () => {
  assertEquals(await decided(["read", "write!"], permissions({})), ["ok Ran ls.", "asks Run write?"]);
});
