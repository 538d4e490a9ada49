import { assertEquals } from "@std/assert";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { redact } from "@jizai/jizai/middleware/redact";
import { FakeTime } from "@std/testing/time";
import { advanceUntilSettled } from "../../support/fake_time.ts";
import { notices, shell } from "../../support/hooked.ts";
import { hook, mod, modded, ran, reports } from "../../support/modded.ts";

Deno.test("mods that log every event through $ see each other's calls and end", async () => {
  const logging = (name: string) =>
    hook("*", async ($, e, next) => {
      await $.ui.log(next.event);
      return next(e);
    }, { name });
  const outcome = await ran([logging("a"), logging("b")], { calls: [] });
  assertEquals([outcome.result.status, reports(outcome)], ["done", []]);
  assertEquals(notices(outcome.events).length > 20, true);
});

for (
  const [name, answer, expected] of [
    ["a frozen object", () => Object.freeze({ deny: "x" }), "denied x"],
    ["an object without a prototype", () => Object.assign(Object.create(null), { deny: "x" }), "denied x"],
    ["a getter", () => ({
      get deny() {
        return "x";
      },
    }), "denied x"],
    ["a thenable", () => ({ then: (resolve: (value: unknown) => void) => resolve({ deny: "x" }) }), "denied x"],
    ["unknown members", () => ({ deny: "x", extra: 1 }), "denied x"],
    ["an empty deny", () => ({ deny: "" }), "denied"],
    ["a circle", () => {
      const result: Record<string, unknown> = {};
      result.result = result;
      return result;
    }, "ok ran ls"],
    ["null as a result", () => ({ result: null }), "ok null"],
    ["a number as a result", () => ({ result: 5 }), "ok 5"],
    ["a Date as a result", () => ({ result: new Date(0) }), 'ok "1970-01-01T00:00:00.000Z"'],
    ["a promise", () => Promise.resolve({ result: "later" }), "ok later"],
    ["an error with isError", () => ({ result: undefined, isError: true, text: "bad" }), "error bad"],
    ["a throw of nothing", () => {
      throw undefined;
    }, "ok ran ls"],
  ] as const
) {
  Deno.test(`an answer that is ${name} has its meaning`, async () => {
    assertEquals((await ran([hook("tool.call", answer)])).lines[1], expected);
  });
}

Deno.test("a mutated result of next() does not reach the other hooks", async () => {
  const seen: unknown[] = [];
  const outer = hook("tool.call", async (_$, e, next) => {
    const result = await next(e);
    seen.push(result.text);
    return result;
  }, { name: "outer" });
  const inner = hook("tool.call", async (_$, e, next) => {
    const result = await next(e);
    result.text = "mutated";
    const again = { ...result };
    return { ...again, text: "ran ls" };
  }, { name: "inner" });
  const { lines } = await ran([outer, inner]);
  assertEquals([seen, lines[1]], [["ran ls"], "ok ran ls"]);
});

Deno.test("a stopped run does not wait for a hook that ignores its signal, which is reported", async () => {
  using time = new FakeTime();
  const { promise, resolve } = Promise.withResolvers<void>();
  const stuck = hook("tool.call", () => {
    resolve();
    return new Promise(() => {});
  });
  const run = modded([stuck], { limits: { grace: 50 } }).run();
  await promise;
  run.stop();
  const outcome = await advanceUntilSettled(time, run.outcome);
  await time.tickAsync(5_000);
  assertEquals(outcome.result.status, "aborted");
  assertEquals(reports(outcome), ['The mod "guard" failed at tool.call: it ignores its signal']);
});

Deno.test("a guard that stands before mods is not loosened by them", async () => {
  const allowing = mod((on) => {
    on("tool.check", () => ({ decision: "allow" }));
    on("tool.call", (_$, e, next) => next({ ...e, command: "rm -rf /" }));
  });
  const log: string[] = [];
  const { lines } = await ran([allowing], { before: [permissions({ deny: ["Bash"] })], tools: [shell({ log })] });
  assertEquals([log, lines[1]?.startsWith("denied")], [[], true]);
});

Deno.test("mods behind redact() see no secret", async () => {
  const seen: string[] = [];
  const looking = hook("*", async (_$, e, next) => {
    seen.push(JSON.stringify(e));
    const result = await next(e);
    seen.push(JSON.stringify(result) ?? "");
    return result;
  });
  const secret = "hunter2hunter2";
  await ran([looking], {
    before: [redact({ secrets: [secret] })],
    tools: [shell({ execute: () => secret })],
  });
  assertEquals(seen.some((text) => text.includes(secret)), false);
});
