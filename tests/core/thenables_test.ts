/**
 * A thenable that a hook did not await is refused, wherever the hook passes it on: its inside is never stored, sent or emitted.
 */
import {
  agent,
  cancelled,
  continueWith,
  deny,
  memory,
  type Middleware,
  refused,
  reply,
  text,
  tool,
  type ToolContext,
  user,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals, assertStringIncludes } from "@std/assert";
import * as z from "zod";

const password = "the password of the query builder";

/** A query builder: a thenable whose fields contain a password. Hooks written without types pass it on in place of a text. */
const query = {
  password,
  then: (resolve: (rows: unknown) => unknown) => Promise.resolve([{ id: 1 }]).then(resolve),
} as never;

/** Runs an agent with a hook. Returns the status of the run, the first error, and everything that was stored, sent to the model or emitted. */
async function ran(hook: Middleware) {
  const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "seen" });
  const model = scripted({ calls: [["look", {}]] }, "Done.", "Again.");
  const store = memory();
  const errors: string[] = [];
  const run = agent({ model, tools: [look], use: [{ name: "careless", ...hook }] }).run({
    prompt: "Hi",
    session: "s",
    store,
    onError: (error) => void errors.push(String(error)),
  });
  const [result, events] = [await run.result, await Array.fromAsync(run.events)];
  const { error: _, ...rest } = result;
  const sent = model.requests.map(({ messages, instructions, options }) => ({ messages, instructions, options }));
  return {
    status: result.status,
    error: errors[0] ?? "",
    text: JSON.stringify([rest, events, sent, await store.load("s")]),
  };
}

const changes: Readonly<Record<string, Middleware>> = {
  "the context of session": { session: (_, next) => next({ context: [query] }) },
  "a message at input": { input: (_, next) => next({ messages: [user(query)] }) },
  "the context of input": { input: (_, next) => next({ context: [query] }) },
  "the prompt": { prompt: (_, next) => next({ prompt: user(query) }) },
  "the context of prompt": { prompt: (_, next) => next({ context: [query] }) },
  "the context of turn": { turn: (_, next) => next({ context: [query] }) },
  "the transcript": { turn: (ctx, next) => next({ transcript: [...ctx.transcript, user(query, "hook")] }) },
  "the whole change": { turn: (_, next) => next(Promise.resolve({}) as never) },
  "the settings": { session: (_, next) => next({ settings: query }) },
  "the request": { model: (_, next) => next({ request: query }) },
  "the messages of a request": { model: (_, next) => next({ request: { messages: [user(query)] } }) },
};

for (const [what, hook] of Object.entries(changes)) {
  Deno.test(`a thenable in ${what} fails the run with the name of the hook`, async () => {
    const { status, error, text } = await ran(hook);
    assertStringIncludes(error, 'Cannot use the change of "careless"');
    assertEquals([status, text.includes(password)], ["failed", false]);
  });
}

const answers: Readonly<Record<string, Middleware>> = {
  "a refusal at input": { input: () => Promise.resolve(refused(query)) },
  "a refusal at prompt": { prompt: () => Promise.resolve(cancelled(query)) },
  "the answer to a prompt": { prompt: async (_, next) => ({ ...await next(), text: query }) },
  "the result of a session": { session: async (_, next) => ({ ...await next(), reason: query }) },
  "a response": { model: () => Promise.resolve(reply(query)) },
  "the usage of a response": { model: async (_, next) => ({ ...await next(), usage: query }) },
  "a result": { tool: () => Promise.resolve(text(query)) },
  "the status of a result": { tool: async (_, next) => ({ ...await next(), status: query }) },
  "the context of a result": { tool: async (_, next) => ({ ...await next(), context: [query] }) },
  "the text of a result for the person": { tool: async (_, next) => ({ ...await next(), person: query }) },
  "a message at stop": { stop: () => Promise.resolve(continueWith(user(query))) },
};

for (const [what, hook] of Object.entries(answers)) {
  Deno.test(`a thenable in ${what} fails the run with the name of the hook`, async () => {
    const { status, error, text } = await ran(hook);
    assertStringIncludes(error, 'Cannot use the answer of "careless"');
    assertEquals([status, text.includes(password)], ["failed", false]);
  });
}

Deno.test("a thenable in the result of a hook at execute fails the call", async () => {
  const { status, error, text: all } = await ran({ execute: () => Promise.resolve(text(query)) });
  assertStringIncludes(error, 'Cannot use the answer of "careless" at execute');
  assertEquals([status, all.includes(password)], ["done", false]);
});

Deno.test("promises in a result that are not awaited do not end the process when they reject", async () => {
  const rejections: unknown[] = [];
  const listen = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    rejections.push(event.reason);
  };
  addEventListener("unhandledrejection", listen);
  const late = () => Promise.reject(new Error("late"));
  const find = tool({
    name: "find",
    description: "Finds",
    input: z.object({}),
    execute: () => ({ user: { posts: [late(), late()] }, friend: late() }),
  });
  const model = scripted({ calls: [["find", {}]] }, "Done.");
  const { status } = await agent({ model, tools: [find] }).run({ prompt: "Hi", onError: () => {} }).result;
  await new Promise((resolve) => setTimeout(resolve));
  removeEventListener("unhandledrejection", listen);
  assertEquals([status, rejections], ["done", []]);
});

Deno.test("the search for promises in a refused value ends, however deep and large the value is", async () => {
  const deep: Record<string, unknown> = {};
  for (let at = deep, level = 0; level < 20_000; level++) at = at.inner = {};
  const large = Array.from({ length: 2_000 }, () => ({ at: 1n }));
  for (const [value, why] of [[deep, "is nested deeper than 100 levels"], [large, "has a BigInt"]] as const) {
    const { error } = await ran({ execute: () => Promise.resolve(text(value as never)) });
    assertStringIncludes(error, why);
  }
});

Deno.test("a thenable in the reason of a guard denies the call", async () => {
  const { status, error, text } = await ran({ approval: () => Promise.resolve(deny(query)) });
  assertStringIncludes(error, "Cannot use the decision of a guard: it has a promise or another thenable; await it");
  assertEquals([status, text.includes(password), text.includes("A guard failed.")], ["done", false, true]);
});

const calls: Readonly<Record<string, (ctx: ToolContext) => void>> = {
  "Cannot end the run": ({ run }) => void run.end(query),
  "Cannot pause": ({ run }) => void run.pause(query),
  "Cannot emit notice": ({ emit }) => emit({ type: "notice", text: query }),
  "Cannot emit warning": ({ emit }) => emit({ type: "warning", code: "hook.failed", message: query }),
};

for (const [operation, call] of Object.entries(calls)) {
  Deno.test(`a hook receives the error "${operation}" for a thenable`, async () => {
    const { status, error, text } = await ran({
      tool(ctx, next) {
        call(ctx);
        return next();
      },
    });
    assertStringIncludes(error, `${operation}: it has a promise or another thenable; await it`);
    assertEquals([status, text.includes(password)], ["failed", false]);
  });
}
