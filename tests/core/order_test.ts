import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import { type Agent, agent, type Middleware, only, tool, when } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { explain } from "@jizai/jizai/explain";
import { budget } from "@jizai/jizai/middleware/budget";
import { cache } from "@jizai/jizai/middleware/cache";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { fallback } from "@jizai/jizai/middleware/fallback";
import { handoff } from "@jizai/jizai/middleware/handoff";
import { moderation, type Moderator } from "@jizai/jizai/middleware/moderation";
import { redact } from "@jizai/jizai/middleware/redact";
import { retry } from "@jizai/jizai/middleware/retry";
import { transcript } from "@jizai/jizai/middleware/transcript";
import { truncate } from "@jizai/jizai/middleware/truncate";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";

const make = (...use: Middleware[]) => () => agent({ model: scripted(), use });

Deno.test("after: a middleware must come later in use than those that it names", () => {
  const audit: Middleware = { name: "audit", after: ["redact", "retry"] };
  const redact: Middleware = { name: "redact" };
  make(redact, audit)();
  make(audit)();
  const error = 'Cannot use "audit" before "redact": put redact() first in use';
  assertThrows(make(audit, redact), TypeError, error);
  assertThrows(make(when(() => true, audit), when(() => true, redact)), TypeError, error);
  assertThrows(make(only("x", audit), redact), TypeError, error);
});

Deno.test("requires: a middleware needs those that it names, at any place in use", () => {
  const human: Middleware = { name: "human", requires: ["permissions"] };
  const permissions: Middleware = { name: "permissions" };
  make(human, permissions)();
  make(permissions, human)();
  const error = 'Cannot use "human" without "permissions": add permissions() to use';
  assertThrows(make(human), TypeError, error);
  assertThrows(make(human, { name: "logger" }), TypeError, error);
});

Deno.test("a middleware without a name is named by its index in errors", () => {
  assertThrows(
    make({ name: "first" }, { after: ["last"] }, { name: "last" }),
    TypeError,
    'Cannot use "use[1]" before "last": put last() first in use',
  );
  assertThrows(make({ requires: ["last"] }), TypeError, 'Cannot use "use[0]" without "last"');
});

Deno.test("agent() rejects a factory that was not called", () => {
  const guard = (): Middleware => ({ approval: async (_, next) => await next() });
  // @ts-expect-error: a factory is not a middleware
  assertThrows(make(guard), TypeError, 'Cannot use "guard": call it, as guard()');
});

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen" });

Deno.test("agent() rejects two tools with the same name, and names the sources of both", () => {
  const error = (first: string, second: string) =>
    `Cannot create the agent: "${first}" and "${second}" both have a tool "look"; rename one`;
  const twice = 'Cannot create the agent: "tools" has two tools "look"; rename one';
  const bring = { name: "bring", tools: [look] };
  assertThrows(() => agent({ model: scripted(), tools: [look, look] }), TypeError, twice);
  assertThrows(() => agent({ model: scripted(), tools: [look], use: [bring] }), TypeError, error("tools", "bring"));
  assertThrows(make(bring, { tools: [look] }), TypeError, error("bring", "use[1]"));
});

Deno.test("a run fails with an error that says what a function or a hook returned in place of a model", async () => {
  const create = agent as (options: object) => Agent<object, unknown>; // as code without types calls it
  const returned = async (options: object) => {
    const { status, error } = await create({ model: scripted(), observe: () => {}, ...options }).run("Hi").result;
    return [status, String(error)];
  };
  const message = (value: string) =>
    `TypeError: Cannot ask the model: \`model\` is ${value}; expected a model, such as openai({ model, apiKey })`;
  const hook: Middleware = { name: "other", model: (_, next) => next({ request: { model: "gpt" as never } }) };
  const settings: Middleware = { name: "other", session: (_, next) => next({ settings: { model: "gpt" as never } }) };
  assertEquals(await returned({ model: () => "gpt" }), ["failed", message('"gpt"')]);
  assertEquals(await returned({ model: () => {} }), ["failed", message("undefined")]);
  assertEquals(await returned({ model: () => null }), ["failed", message("null")]);
  assertEquals(await returned({ model: () => scripted }), ["failed", message("function")]);
  assertEquals(await returned({ use: [hook] }), ["failed", message('"gpt"')]);
  assertEquals(await returned({ use: [settings] }), ["failed", message('"gpt"')]);
});

Deno.test("explain() lists the chain of every point, the outermost first, and the tools", () => {
  const guard: Middleware = { name: "guard", approval: (_, next) => next(), tool: (_, next) => next() };
  const inner: Middleware = { tool: (_, next) => next(), tools: [{ ...look, name: "inner" }] };
  const assistant = agent({
    name: "assistant",
    model: scripted(),
    tools: [look],
    use: [guard, inner, when(() => false, { ...guard, name: "maybe" }), { name: "plain", model: (_, next) => next() }],
  });
  assertEquals(
    explain(assistant),
    `
assistant
session   core
input     core
prompt    core
turn      core
model     plain → core
tool      guard → use[1] → maybe → core
approval  guard → maybe → core
execute   core
stop      core
compact   core
subagent  core
error     core
abort     core
groups    not requested
tools     look, inner
`.trim(),
  );
  assertEquals(explain(agent({ model: scripted() })).split("\n").at(-1), "tools     none");
});

Deno.test("agent() refuses a misspelt hook, and suggests the point", () => {
  const cases = { excute: "execute", tol: "tool", onTool: "tool", beforeModel: "model", sesion: "session" };
  for (const [key, point] of Object.entries(cases)) {
    const middleware = { name: "misspelt", [key]: () => {} };
    const error = `Cannot use "misspelt": there is no point "${key}"; expected "${point}"`;
    assertThrows(() => agent({ model: scripted("Hello!"), use: [middleware] }), TypeError, error);
  }
  agent({ model: scripted("Hello!"), use: [{ name: "total", total: () => 1 } as Middleware] });
});

Deno.test("agent() refuses two middleware of a name that after or requires names", () => {
  const twice = [{ name: "redact" }, { name: "redact" }];
  const error = 'Cannot use "audit" with two middleware named "redact": expected one, give one another name';
  for (const order of [{ after: ["redact"] }, { requires: ["redact"] }]) {
    const audit = { name: "audit", ...order };
    assertThrows(make(...twice, audit), TypeError, error);
    assertThrows(make({ name: "redact" }, audit, { name: "redact" }), TypeError, error);
  }
  agent({ model: scripted("Hello!"), use: twice });
});

Deno.test("agent() refuses to be created without a model", () => {
  // @ts-expect-error there is no model
  const make = () => agent({});
  assertThrows(make, TypeError, 'Cannot create the agent "agent": it has no model; expected `model`');
});

Deno.test("agent() and tool() name what is wrong with values that types forbid", () => {
  const model = scripted("Hello!");
  const input = z.object({});
  const cases: readonly (readonly [object, string])[] = [
    [{ model: "gpt" }, 'Cannot create the agent "agent": its `model` is not a model; expected `model`'],
    [{ model, use: {} }, "Cannot create the agent: expected a list of middleware in `use`"],
    [{ model, use: [{}, undefined] }, "Cannot use use[1]: expected a middleware, an object with hooks"],
    [{ model, use: [() => {}] }, "Cannot use use[0]: expected a middleware, an object with hooks"],
    [{ model, use: [{ name: "log", tool: true }] }, 'Cannot use "log": its `tool` is not a function; expected a hook'],
  ];
  const make = agent as (options: object) => unknown; // as code without types calls it
  for (const [options, message] of cases) assertThrows(() => make(options), TypeError, message);
  const makeTool = tool as (options: object) => unknown; // as code without types calls it
  const named = { name: "look", description: "Looks" };
  assertThrows(
    () => makeTool({ ...named, input }),
    TypeError,
    'Cannot create tool "look": expected a function `execute`',
  );
  const noSchema = () => makeTool({ ...named, execute: () => "" });
  assertThrows(noSchema, TypeError, 'Cannot describe tool "look": it has no schema; expected a Standard Schema');
});

Deno.test("a middleware stands before those that its `before` names, where they are used", () => {
  const trace: Middleware = { name: "trace", before: ["retry"] };
  const retry: Middleware = { name: "retry" };
  make(trace, retry)();
  make(trace)();
  assertThrows(make(retry, trace), TypeError, 'Cannot use "retry" before "trace": put trace() first in use');
  const wrapped = only("x", { ...trace, tool: (_, next) => next() });
  assertThrows(make(retry, wrapped), TypeError, 'Cannot use "retry" before "trace"');
});

Deno.test("order declared sorts middleware by after and before, and keeps the given order otherwise", () => {
  const named = (name: string, order: Pick<Middleware, "after" | "before"> = {}): Middleware => ({
    name,
    ...order,
    prompt: (_, next) => next(),
  });
  const chain = (...use: Middleware[]) => {
    const lines = explain(agent({ model: scripted(), use, order: "declared" })).split("\n");
    return lines.find((line) => line.startsWith("prompt"))?.slice(10);
  };
  const [a, b, c, d] = [named("a"), named("b"), named("c"), named("d")];
  assertEquals(chain(a, b, c, d), "a → b → c → d → core");
  assertEquals(chain(named("x", { after: ["c"] }), a, b, c, d), "a → b → c → x → d → core");
  assertEquals(chain(a, b, c, named("x", { before: ["b"] })), "a → c → x → b → core");
  assertEquals(
    chain(named("x", { after: ["y"] }), a, named("y", { after: ["z"], before: ["a"] }), named("z")),
    "z → y → x → a → core",
  );
  assertEquals(chain(named("x", { after: ["missing"], before: ["gone"] }), a), "x → a → core");
});

Deno.test("order declared refuses a cycle, and names its middleware", () => {
  const sorted = (...use: Middleware[]) => () => agent({ model: scripted(), use, order: "declared" });
  assertThrows(
    sorted({ name: "free" }, { name: "a", after: ["b"] }, { name: "b", after: ["c"] }, { name: "c", after: ["a"] }),
    TypeError,
    'Cannot order the middleware: "c" before "b" before "a" before "c"; remove one of these declarations',
  );
  assertThrows(
    sorted({ name: "late", after: ["a"] }, { name: "a", before: ["b"] }, { name: "b", before: ["a"] }),
    TypeError,
    'Cannot order the middleware: "b" before "a" before "b"; remove one of these declarations',
  );
  assertThrows(sorted({ name: "a", after: ["a"] }), TypeError, '"a" before "a"');
});

Deno.test("agent() refuses a middleware that was written for another version of the interface", () => {
  const written = (interfaceVersion: number): Middleware => ({ name: "old", interfaceVersion });
  make(written(1))();
  make({ name: "any" })();
  assertThrows(
    make(written(2)),
    TypeError,
    'Cannot use "old": it was written for version 2 of the interface; expected 1, update @jizai/jizai',
  );
  assertThrows(
    make(when(() => true, written(0))),
    TypeError,
    'Cannot use "old": it was written for version 0 of the interface; expected 1, update the package of "old"',
  );
  assertThrows(make(written(NaN)), TypeError, "version NaN");
});

Deno.test("agent() accepts the order of middleware that the README of middleware states", async () => {
  const text = await Deno.readTextFile("middleware/README.md");
  const [, list = ""] = /An order that fits all: ([^.]*)\./.exec(text) ?? [];
  const names = Array.from(list.matchAll(/`(\w+)`/g), ([, name = ""]) => name);
  const model = scripted("Hello.");
  const moderator: Moderator = { moderate: () => Promise.resolve({ flagged: false, categories: [] }) };
  const known: Readonly<Record<string, Middleware>> = {
    truncate: truncate(),
    cache: cache({ keyValue: memoryKeyValue() }),
    redact: redact(),
    moderation: moderation({ moderator }),
    transcript: transcript({ dir: "/transcripts" }),
    handoff: handoff([{ name: "expert", description: "Knows all", instructions: "Answer." }]),
    retry: retry(),
    fallback: fallback([model]),
    budget: budget({ tokens: 1_000 }),
    compaction: compaction(),
  };
  assertEquals(names.toSorted(), Object.keys(known).toSorted());
  const use = names.flatMap((name) => known[name] ?? []);
  agent({ model, use });
  for (const [outer, inner] of [["redact", "cache"], ["compaction", "redact"], ["fallback", "handoff"]] as const) {
    assertThrows(() => agent({ model, use: [known[outer] ?? {}, known[inner] ?? {}] }), TypeError, "Cannot use");
  }
});
