import { assertEquals } from "@std/assert";
import { agent, type Middleware, state } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";

Deno.test("state begins anew in every run, and is one within it", async () => {
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

Deno.test("state is made when it is first read, set or not, also to nothing", async () => {
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
