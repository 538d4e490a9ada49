import { assertEquals, assertThrows } from "@std/assert";
import { agent, allow, ask, deny, type Middleware, type RunResult, tool } from "@jizai/jizai";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { barrier, gauge, settled } from "../support/batch.ts";
import { lines } from "../support/transcript_lines.ts";
import { asTool } from "@jizai/jizai/subagents";

const drop = tool({ name: "drop", description: "Drops", input: z.object({}), execute: () => "Dropped" });
const dropping = { calls: [["drop", {}]] } as const;

/** A tree of three agents: the innermost one drops. Each has its own middleware. */
function tree(
  { root = [], middle = [], leaf = [], answers = [dropping, "Gone."] }: {
    readonly root?: readonly Middleware[];
    readonly middle?: readonly Middleware[];
    readonly leaf?: readonly Middleware[];
    readonly answers?: readonly ScriptedAnswer[];
  },
) {
  const last = agent({ name: "leaf", model: scripted(...answers), tools: [drop], use: leaf });
  const second = agent({
    name: "middle",
    model: scripted({ calls: [["leaf", { prompt: "Drop" }]] }, "Passed on."),
    tools: [asTool(last)],
    use: middle,
  });
  const first = agent({
    name: "root",
    model: scripted({ calls: [["middle", { prompt: "Drop" }]] }, "Done."),
    tools: [asTool(second)],
    use: root,
  });
  return first.run("Go");
}

/** Returns the results of the innermost agent. */
async function atTheBottom(run: ReturnType<typeof tree>): Promise<readonly string[]> {
  const reported: string[] = [];
  for await (let event of run.events) {
    while (event.type === "subagent.event") event = event.event;
    if (event.type === "tool.finished" && event.result.name === "drop") {
      reported.push(...lines([{ role: "tool", results: [event.result] }]));
    }
  }
  return reported;
}

const guard = (name: string, approval: NonNullable<Middleware["approval"]>): Middleware => ({ name, approval });

Deno.test("a guard also applies to subagents, together with their own guards: the strictest decides", async () => {
  const strict = guard("strict", (ctx, next) => ctx.name === "drop" ? Promise.resolve(deny("Not here.")) : next());
  const loose = guard("loose", () => Promise.resolve(allow()));
  assertEquals(await atTheBottom(tree({})), ["ok Dropped"]);
  for (const use of [{ root: [strict], leaf: [loose] }, { root: [loose], leaf: [strict] }, { middle: [strict] }]) {
    assertEquals(await atTheBottom(tree(use)), ["denied Not here."]);
  }
});

Deno.test("a question of the parent's guard about a child's call has the path of the child", async () => {
  const asking = guard("asking", (ctx, next) => ctx.name === "drop" ? Promise.resolve(ask("Sure?")) : next());
  const { status, questions }: RunResult = await tree({ root: [asking] }).result;
  assertEquals([status, questions.map(({ path, questions }) => [path, questions])], [
    "paused",
    [[["middle", "leaf"], ["Sure?"]]],
  ]);
});

Deno.test("isolated middleware does not apply to subagents, and inherited middleware applies at every point", async () => {
  const seen: string[] = [];
  const note = (inherit: boolean | undefined): Middleware => ({
    name: "note",
    ...(inherit !== undefined && { inherit }),
    approval: (ctx, next) => {
      seen.push(`approval ${ctx.name}`);
      return next();
    },
    turn: (ctx, next) => {
      seen.push(`turn ${ctx.run.path.length}`);
      return next();
    },
  });
  const ofRoot = ["turn 0", "approval middle", "turn 0"];
  const reported = async (inherit: boolean | undefined) => {
    seen.length = 0;
    await tree({ root: [note(inherit)] }).result;
    return [...seen];
  };
  assertEquals(await reported(false), ofRoot);
  assertEquals(await reported(undefined), ["turn 0", "approval middle", "approval leaf", "approval drop", "turn 0"]);
  assertEquals(await reported(true), [
    "turn 0",
    "approval middle",
    "turn 1",
    "approval leaf",
    "turn 2",
    "approval drop",
    "turn 2",
    "turn 1",
    "turn 0",
  ]);
});

Deno.test("a subagent does not inherit a middleware that it has itself", async () => {
  let asked = 0;
  const shared = guard("shared", (_, next) => {
    asked++;
    return next();
  });
  await tree({ root: [shared], middle: [shared], leaf: [shared] }).result;
  assertEquals(asked, 3);
  await tree({ root: [shared], leaf: [shared] }).result;
  assertEquals(asked, 6);
});

Deno.test("a subagent gets the tools of inherited middleware", async () => {
  const clock = tool({ name: "clock", description: "Tells the time", input: z.object({}), execute: () => "Noon" });
  const timely: Middleware = { name: "timely", inherit: true, tools: [clock] };
  const model = scripted({ calls: [["clock", {}]] }, "Noon.");
  const child = agent({ name: "child", model });
  const root = agent({
    model: scripted({ calls: [["child", { prompt: "Time?" }]] }, "Done."),
    tools: [asTool(child)],
    use: [timely],
  });
  assertEquals(lines((await root.run("Time?").result).messages)[2], "ok Noon.");
  assertEquals(model.requests[0]?.tools.map(({ name }) => name), ["clock"]);
});

Deno.test("asTool() has the name, the description and the limits of the agent, or those in its options", async () => {
  const child = agent({ name: "child", description: "Helps", model: scripted(dropping, "Never."), tools: [drop] });
  const { definition: own } = asTool(child);
  const { definition: other } = asTool(child, { name: "helper", description: "Helps more" });
  assertEquals([own.name, own.description, other.name, other.description], ["child", "Helps", "helper", "Helps more"]);
  assertThrows(() => asTool(agent({ name: "no name", model: scripted() })), TypeError, `Cannot create tool "no name"`);
  const root = agent({
    model: scripted({ calls: [["child", { prompt: "Go" }]] }, "Done."),
    tools: [asTool(child, { limits: { turns: 1 } })],
  });
  const { messages } = await root.run("Go").result;
  assertEquals(lines(messages)[2], "error child did not finish: turns");
});

Deno.test("a run has no more parallel subagents than its limit allows", async () => {
  const working = gauge();
  const two = barrier(2);
  const busy = tool({
    name: "busy",
    description: "Works",
    input: z.object({}),
    execute: () => working.during(() => two().then(settled)),
  });
  const child = () => agent({ name: "child", model: scripted({ calls: [["busy", {}]] }, "Done."), tools: [busy] });
  const children = Array.from({ length: 6 }, (_, index) => asTool(child(), { name: `child${index}` }));
  const calls = children.map(({ name }) => [name, { prompt: "Go" }] as const);
  const root = agent({ model: scripted({ calls }, "Done."), tools: children, limits: { agents: 2 } });
  assertEquals([(await root.run("Go").result).status, working.peak], ["done", 2]);
});

Deno.test("the partial answer of a stopped subagent is emitted, and not sent to the model", async () => {
  const stop: Middleware = {
    name: "stop",
    subagent: (ctx, next) => next({ signal: AbortSignal.any([ctx.signal, halt.signal]) }),
  };
  const halt = new AbortController();
  const child = agent({
    name: "child",
    model: scripted({
      reads: (function* () {
        yield [{ type: "text", text: "Half" }] as const;
        halt.abort();
        yield [{ type: "text", text: " more" }] as const;
      })(),
    }),
  });
  const root = agent({
    model: scripted({ calls: [["child", { prompt: "Go" }]] }, "Done."),
    tools: [asTool(child)],
    use: [stop],
  });
  const run = root.run("Go");
  const events = await Array.fromAsync(run.events);
  assertEquals(events.filter(({ type }) => type === "subagent.finished"), [
    { type: "subagent.finished", call: "call_1", agent: "child", status: "aborted", text: "Half" },
  ]);
  assertEquals(lines((await run.result).messages)[2], "error child did not finish: signal");
});
