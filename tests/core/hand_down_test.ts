import { agent, type Middleware, refused, type Run } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { handDown } from "../../src/core/hand_down.ts";

/** A middleware that hands down the path of its run and the call, and notes who was handed what. */
function handing() {
  const seen: string[] = [];
  const runs: Run[] = [];
  const handed = handDown<string>();
  const middleware: Middleware = {
    name: "handing",
    session(ctx, next) {
      const { run } = ctx;
      runs.push(run);
      seen.push(`${run.path.join("/") || "outermost"} ${handed.to(run) ?? "nothing"}`);
      return next();
    },
    subagent: (ctx, next) => handed.along(ctx, next, `${ctx.child} of ${ctx.call}`),
  };
  return { middleware, seen, left: () => runs.filter((run) => handed.to(run) !== undefined) };
}

const help = { name: "help", description: "Helps" };
const asking = (times: number) => ({
  calls: Array.from({ length: times }, () => ["help", { prompt: "Help" }] as const),
});

Deno.test("handDown() hands each child what was meant for it, however deep, and nothing to others", async () => {
  const { middleware, seen, left } = handing();
  const use = [middleware];
  const inner = agent({ name: "inner", model: scripted("Deep.", "Deep."), use });
  const outer = agent({
    name: "outer",
    model: scripted(asking(1), asking(1), "Helped.", "Helped."),
    tools: [inner.asTool(help)],
    use,
  });
  await agent({ name: "top", model: scripted(asking(2), "Done."), tools: [outer.asTool(help)], use }).run("Hi").result;
  assertEquals(seen, [
    "outermost nothing",
    "top outer of call_1",
    "top outer of call_2",
    "top/outer inner of call_1",
    "top/outer inner of call_2",
  ]);
  assertEquals(left(), []);
});

Deno.test("handDown() forgets a child that failed, and one that was refused", async () => {
  const { middleware, seen, left } = handing();
  const refusing: Middleware = {
    name: "refusing",
    subagent: (ctx, next) => ctx.call === "call_1" ? Promise.resolve(refused("No.")) : next(),
  };
  const child = agent({ name: "child", model: scripted(), use: [middleware] });
  await agent({
    model: scripted(asking(2), "Done."),
    tools: [child.asTool(help)],
    use: [middleware, refusing],
  }).run("Hi").result;
  assertEquals(seen, ["outermost nothing", "agent child of call_2"]);
  assertEquals(left(), []);
});
