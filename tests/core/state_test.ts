import { assertEquals } from "@std/assert";
import { agent, type Middleware, state } from "@jizai/jizai";
import type { StateOptions } from "@jizai/jizai/engine";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { recordingStore } from "../support/recording_store.ts";
import { asTool } from "@jizai/jizai/subagents";

Deno.test("run state starts with its initial value in every run, and is shared within it", async () => {
  const seen = state<string[]>("seen", () => []);
  const same = state<string[]>("seen", () => ["never"]);
  const all: (readonly string[])[] = [];
  const note = (name: string): Middleware => ({
    name,
    turn: async (ctx, next) => {
      seen.update(ctx, (names) => [...names, name]);
      const result = await next();
      all.push(same.get(ctx));
      return result;
    },
  });
  const go = Promise.withResolvers<void>();
  const slow = scripted({ text: "One.", before: () => go.promise });
  const use = [note("a"), note("b")];
  const first = agent({ model: slow, use }).run("1");
  const second = agent({ model: scripted("Two."), use }).run("2");
  await second.result;
  go.resolve();
  await first.result;
  assertEquals(all, [["a", "b"], ["a", "b"], ["a", "b"], ["a", "b"]]);
});

Deno.test("state is initialized on its first read, also to undefined", async () => {
  let made = 0;
  const maybe = state<number | undefined>("maybe", () => ++made);
  const log: unknown[] = [];
  const use: Middleware[] = [{
    prompt: (ctx, next) => {
      log.push(made, maybe.get(ctx), maybe.get(ctx), maybe.update(ctx, () => undefined), maybe.get(ctx), made);
      maybe.set(ctx, 7);
      log.push(maybe.get(ctx), ctx.run.state.get("maybe"));
      return next();
    },
  }];
  await agent({ model: scripted("Hi!"), use }).run("Hi").result;
  assertEquals(log, [0, 1, 1, undefined, undefined, 1, 7, 7]);
});

/** Counts in the session, and records the counts. */
function counting(options: StateOptions, init = () => 0) {
  const seen: unknown[] = [];
  const count = state<unknown>("count", init, { lifetime: "session", ...options });
  const use: Middleware = {
    name: "counting",
    inherit: true,
    prompt: (ctx, next) => {
      seen.push(count.update(ctx, (n) => Number(n) + 1));
      return next();
    },
  };
  return { seen, use };
}

Deno.test("session state continues in every run of its session, and in no other", async () => {
  const { store, saved } = recordingStore();
  const { seen, use } = counting({});
  const assistant = agent({ model: scripted("1", "2", "3"), use: [use] });
  for (const session of ["s", "s", "t"]) await assistant.run({ prompt: "Hi", session, store }).result;
  assertEquals(seen, [1, 2, 1]);
  assertEquals(saved.at(-1)?.state, [["count", 1]]);
});

Deno.test("session state is shared with subagents", async () => {
  const { seen, use } = counting({});
  const child = agent({ name: "child", model: scripted("Helped.") });
  const model = scripted({ calls: [["child", { prompt: "Help" }]] }, "Done.");
  await agent({ model, tools: [asTool(child)], use: [use] }).run({
    prompt: "Hi",
    session: "s",
    store: recordingStore().store,
  })
    .result;
  assertEquals(seen, [1, 2]);
});

Deno.test("session state with another version, or that its schema rejects, starts with its initial value", async () => {
  const kept = async (before: unknown, options: StateOptions) => {
    const { store } = recordingStore();
    const { seen, use } = counting({});
    await agent({ model: scripted("1"), use: [{ ...use, prompt: setting(before) }] })
      .run({ prompt: "Hi", session: "s", store }).result;
    const next = counting(options);
    await agent({ model: scripted("2"), use: [next.use] }).run({ prompt: "Hi", session: "s", store }).result;
    return [...seen, ...next.seen];
  };
  const setting = (value: unknown): NonNullable<Middleware["prompt"]> => (ctx, next) => {
    state<unknown>("count", () => 0, { lifetime: "session" }).set(ctx, value);
    return next();
  };
  assertEquals(await kept(7, {}), [8]);
  assertEquals(await kept(7, { version: 2 }), [1]);
  assertEquals(await kept(7, { schema: z.number() }), [8]);
  assertEquals(await kept("7", { schema: z.number() }), [1]);
  assertEquals(await kept(7, { schema: z.number().refine(() => Promise.resolve(true)) }), [1]);
});
