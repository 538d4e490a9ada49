import { deny, tool } from "@jizai/jizai";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { command, shell, warnings } from "../../support/hooked.ts";
import { hook, type Loose, mod, modded, ran, resumed } from "../../support/modded.ts";

Deno.test("tool.call shows the arguments beside the tool and its id, and gives the result of the tool", async () => {
  const seen: unknown[] = [];
  await ran([
    hook("tool.call", async (_$, e, next) => {
      const result = await next(e);
      seen.push(e, result);
      return result;
    }),
  ]);
  assertEquals(seen, [{ command: "ls", tool: "Bash", tool_use_id: "a" }, { ref: 1, result: "ran ls", text: "ran ls" }]);
});

Deno.test("a tool that fails gives isError, and one that a guard denies gives deny", async () => {
  const seen: Loose[] = [];
  const looking = hook("tool.call", async (_$, e, next) => {
    const result = await next(e);
    seen.push([result.isError, result.deny]);
    return result;
  });
  const failing = shell({
    execute: () => {
      throw new Error("broken");
    },
  });
  await ran([looking], { tools: [failing] });
  const guarded = await ran([looking], { after: [{ name: "no", approval: () => Promise.resolve(deny("Not here.")) }] });
  assertEquals(seen, [[true, undefined], [undefined, "Not here."]]);
  assertEquals(guarded.lines[1], "denied Not here.");
});

Deno.test("a result that is JSON is a value for mods, and stays as it was if it is passed on", async () => {
  const seen: unknown[] = [];
  const { lines } = await ran([
    hook("tool.call", async (_$, e, next) => {
      const { result } = await next(e);
      seen.push(result);
      return { result: { ...result, added: true } };
    }),
  ], { tools: [shell({ execute: () => ({ size: 1 }) })] });
  assertEquals([seen, lines[1]], [[{ size: 1 }], 'ok {"size":1,"added":true}']);
});

Deno.test("the text of the tool never follows a changed result, and a changed text is what the model reads", async () => {
  const changing = (change: object) =>
    ran([hook("tool.call", async (_$, e, next) => ({ ...await next(e), ...change }))]).then(({ lines }) => lines[1]);
  assertEquals(await changing({}), "ok ran ls");
  assertEquals(await changing({ result: "masked" }), "ok masked");
  assertEquals(await changing({ text: "masked" }), "ok masked");
  assertEquals(await changing({ isError: true }), "error ran ls");
});

Deno.test("context reaches the model after the result, and no client", async () => {
  const agent = modded([hook("tool.call", async (_$, e, next) => ({ ...await next(e), context: ["Use pnpm."] }))]);
  const { events, lines } = await agent.run().outcome;
  assertEquals(lines, ["call Bash", "ok ran ls", "context Use pnpm.", "assistant Done."]);
  assertEquals(events.some((event) => JSON.stringify(event).includes("pnpm")), false);
});

Deno.test("arguments with reserved names are hidden, and still reach the tool", async () => {
  const seen: unknown[] = [];
  const odd = tool({
    name: "Bash",
    description: "Takes odd names",
    input: z.looseObject({}),
    execute: (input) => JSON.stringify(input),
  });
  const input = { tool: "x", tool_use_id: "y", agentId: "z", consent: "w", command: "ls" };
  const { lines } = await ran([
    hook("tool.call", (_$, e, next) => {
      seen.push(e);
      return next({ ...e, command: "pwd" });
    }),
  ], { tools: [odd], calls: [{ ...command("a"), input }] });
  assertEquals(seen, [{ tool: "Bash", tool_use_id: "a", command: "ls" }]);
  assertEquals(JSON.parse(lines[1]!.slice(3)), { ...input, command: "pwd" });
});

Deno.test("an unknown tool and an invalid input run no hook", async () => {
  const seen: unknown[] = [];
  const looking = hook("tool.call", (_$, e, next) => {
    seen.push(e);
    return next(e);
  });
  await ran([looking], { calls: [command("a", "ls", "Other"), { ...command("b"), input: { command: 5 } }] });
  assertEquals(seen, []);
});

Deno.test("tool.check sees the final input and the decision of inner guards and of the tool", async () => {
  const seen: unknown[] = [];
  const rewriting = hook("tool.call", (_$, e, next) => next({ ...e, command: "pwd" }), { name: "rewriting" });
  const checking = hook("tool.check", async (_$, e, next) => {
    const verdict = await next(e);
    seen.push(e, verdict);
    return verdict;
  });
  const options = { after: [permissions({ ask: ["Bash"] })] };
  const { result } = await ran([rewriting, checking], options);
  assertEquals(seen[0], { tool: "Bash", input: { command: "pwd" }, tool_use_id: "a" });
  assertEquals([(seen[1] as Loose).decision, result.status], ["ask", "paused"]);
  await ran([checking]);
  assertEquals(seen[3], { decision: "allow" });
});

Deno.test("an allow of tool.check answers a question without next(), and overrides no deny", async () => {
  const allowing = hook("tool.check", () => ({ decision: "allow" }));
  const asked = await ran([allowing], { tools: [shell({ ask: true })] });
  assertEquals(asked.lines[1], "ok ran ls");
  const denied = await ran([allowing], { after: [permissions({ deny: ["Bash"] })] });
  assertEquals(denied.lines[1]?.startsWith("denied"), true);
  assertEquals(warnings(denied.events), [
    "A mod allowed a call of Bash that another guard has denied: the deny is final.",
  ]);
});

Deno.test("tool.check may deny and ask, and the run continues with the person's answer", async () => {
  const denied = await ran([hook("tool.check", () => ({ decision: "deny", reason: "Not now." }))]);
  assertEquals(denied.lines[1], "denied Not now.");
  const asking = hook("tool.check", () => ({ decision: "ask", reason: "Really?" }));
  const [first, second] = await resumed([asking], [{ type: "approve", callId: "a" }]);
  assertEquals(first.result.questions.map(({ questions }) => questions), [["Really?"]]);
  assertEquals(second.lines[1], "ok ran ls");
});

Deno.test("an answer without next() is approved like a call, unless answersAreApproved is set", async () => {
  const answering = hook("tool.call", () => ({ result: "mine" }));
  const log: string[] = [];
  const tools = [shell({ ask: true, log })];
  assertEquals((await ran([answering], { tools })).result.status, "paused");
  assertEquals((await ran([answering], { tools, answersAreApproved: true })).lines[1], "ok mine");
  assertEquals(
    (await ran([answering], { after: [permissions({ deny: ["Bash"] })] })).lines[1]?.startsWith("denied"),
    true,
  );
  assertEquals(log, []);
});

Deno.test("a paused call stays paused whatever a mod answers, and its hooks run again with the answer", async () => {
  const seen: string[] = [];
  const hiding = hook("tool.call", async (_$, e, next) => {
    try {
      const result = await next(e);
      seen.push(result.text);
      return result;
    } catch (error) {
      seen.push((error as Error).name);
      return { result: "hidden" };
    }
  });
  const [first, second] = await resumed([hiding], [{ type: "approve", callId: "a" }], {
    tools: [shell({ ask: true })],
  });
  assertEquals([first.result.status, second.lines[1], seen], ["paused", "ok ran ls", ["Paused", "ran ls"]]);
});

Deno.test("calls run alone if a mod has a hook at tool.call, so that a lock around next() does not hang", async () => {
  const log: string[] = [];
  const locking = mod((on) => {
    let lock: Promise<unknown> = Promise.resolve();
    on("tool.call", async (_$, e, next) => {
      const before = lock;
      const { promise, resolve } = Promise.withResolvers<void>();
      lock = promise;
      await before;
      log.push(`enter ${e.command}`);
      try {
        return await next(e);
      } finally {
        log.push(`leave ${e.command}`);
        resolve();
      }
    });
  });
  await ran([locking], { calls: [command("a"), command("b")] });
  assertEquals(log, ["enter a", "leave a", "enter b", "leave b"]);
});
