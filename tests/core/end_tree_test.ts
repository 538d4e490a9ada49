import { type Agent, agent, type Middleware, tool } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { eventsOfRun } from "../support/run_events.ts";
import { builtins } from "../support/rpc.ts";
import { lines } from "../support/transcript_lines.ts";

const drop = tool({ name: "drop", description: "Drops it", input: z.object({}), execute: () => "Dropped." });

/** An agent with a child and a grandchild, which calls `drop`. */
function family(own: readonly Middleware[], use: readonly Middleware[] = []) {
  const asks = (name: string) => ({ calls: [[name, { prompt: "Go" }]] as const });
  const grandchild = agent({
    name: "grandchild",
    model: scripted({ calls: [["drop", {}]] }, "Deep."),
    tools: [drop],
    use: own,
  });
  const child = agent({ name: "child", model: scripted(asks("grandchild"), "Middle."), tools: [asTool(grandchild)] });
  return agent({ name: "top", model: scripted(asks("child"), "Done."), tools: [asTool(child)], use });
}

/** Runs such an agent. Returns the result, and the last event of each run, the innermost first. */
async function ran(top: Agent<unknown, string>) {
  const run = top.run({ prompt: "Hi" });
  const statuses: string[] = [];
  for (let event of await eventsOfRun(run)) {
    while (event.type === "subagent.event") event = event.event;
    if (event.type === "run.finished") statuses.push(event.status);
    else if (event.type === "run.failed") statuses.push("failed");
  }
  const { status, reason, messages } = await run.result;
  return { status, reason, statuses, lines: lines(messages) };
}

Deno.test("run.end() in a subagent ends only the subagent", async () => {
  const ending: Middleware = { name: "ending", tool: (ctx) => Promise.reject(ctx.run.end("enough")) };
  assertEquals(await ran(family([ending])), {
    status: "done",
    reason: undefined,
    statuses: ["cancelled", "done", "done"],
    lines: ["user Hi", "call child", "ok Middle.", "assistant Done."],
  });
});

Deno.test("run.end() with tree ends every parent run, and no parent asks its model again", async () => {
  const ending: Middleware = {
    name: "ending",
    tool: (ctx) => Promise.reject(ctx.run.end("enough", { tree: true })),
  };
  const { status, reason, statuses, lines } = await ran(family([ending]));
  assertEquals([status, reason, statuses], ["cancelled", "enough", ["cancelled", "cancelled", "cancelled"]]);
  assertEquals(lines.slice(0, 2), ["user Hi", "call child"]);
  assertEquals(lines.length, 3);
});

Deno.test("run.end() with tree ends the tree also if the hook returns normally", async () => {
  const ending: Middleware = {
    name: "ending",
    tool(ctx, next) {
      ctx.run.end("enough", { tree: true });
      return next();
    },
  };
  const { status, reason, lines } = await ran(family([ending]));
  assertEquals([status, reason, lines.length], ["cancelled", "enough", 3]);
});

Deno.test("run.end() with tree gives every run its status, and rolls every run back", async () => {
  for (const as of ["cancelled", "failed"] as const) {
    const ending: Middleware = {
      name: "ending",
      tool: (ctx) => Promise.reject(ctx.run.end("enough", { as, rollback: true, tree: true })),
    };
    assertEquals(await ran(family([ending])), {
      status: as,
      reason: "enough",
      statuses: [as, as, as],
      lines: [],
    });
  }
});

Deno.test("run.end() with tree in a run without a parent ends that run", async () => {
  const ending: Middleware = { name: "ending", turn: (ctx) => Promise.reject(ctx.run.end("enough", { tree: true })) };
  const { status, reason } = await agent({ model: scripted("Hi."), use: [ending] }).run("Hi").result;
  assertEquals([status, reason], ["cancelled", "enough"]);
});

Deno.test("Claude: continue: false in a subagent ends the session", async () => {
  const hook = (input: { readonly tool_name?: string }) =>
    Promise.resolve(input.tool_name === "drop" ? { continue: false, stopReason: "Enough." } : {});
  const use = [claude_hooks({ PreToolUse: [{ hooks: [hook] }] })];
  const { status, reason, statuses, lines } = await ran(family([], use));
  assertEquals([status, reason, statuses], ["done", "Enough.", ["done", "done", "done"]]);
  assertEquals(lines.slice(0, 2), ["user Hi", "call child"]);
  assertEquals(lines.length, 3);
});

Deno.test("Claude: interrupt: true of a PermissionRequest hook in a subagent ends the session", async () => {
  const guarded: Middleware = {
    name: "guarded",
    approval: () => Promise.resolve({ type: "ask", questions: ["Drop it?"] }),
  };
  const decision = { behavior: "deny", message: "Never.", interrupt: true } as const;
  const hook = () => Promise.resolve({ hookSpecificOutput: { hookEventName: "PermissionRequest", decision } as const });
  const { status, reason } = await ran(family([guarded], [claude_hooks({ PermissionRequest: [{ hooks: [hook] }] })]));
  assertEquals([status, reason], ["done", "Never."]);
});

Deno.test("PicoClaw: hard_abort in a subagent cancels the session and removes its messages", async () => {
  const aborting = builtins({
    a: {
      before_tool: ({ tool }) => tool === "drop" ? { action: "hard_abort", reason: "No." } : { action: "continue" },
    },
  });
  const { status, statuses, lines } = await ran(family([], [aborting]));
  assertEquals([status, statuses, lines], ["cancelled", ["cancelled", "cancelled", "cancelled"], []]);
});
