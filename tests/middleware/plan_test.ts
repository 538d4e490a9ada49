import { agent, type Event, memory } from "@jizai/jizai";
import { plan } from "@jizai/jizai/middleware/plan";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { lines } from "../support/transcript_lines.ts";

const boil = { task: "Boil water", status: "done" } as const;
const pour = { task: "Pour", status: "active" } as const;
const update = (steps: unknown) => ({ calls: [["update_plan", { steps }]] }) as const;

/** Creates an agent with a plan, and the plans that its clients see. */
function planning(...script: readonly ScriptedAnswer[]) {
  const shown: unknown[] = [];
  const model = scripted(...script);
  const observe = (event: Event) => void (event.type === "data" && shown.push([event.name, event.data]));
  return { model, shown, assistant: agent({ model, use: [plan({ max: 2 })], observe }) };
}

Deno.test("plan() obeys the laws of middleware", async () => {
  await testMiddleware(() => plan(), { calls: [["update_plan", { steps: [boil] }]] });
});

Deno.test("plan() shows the plan to clients, and adds it to each request without storing it", async () => {
  const { model, shown, assistant } = planning(update([boil, pour]), update([]), "Done.");
  const { messages } = await assistant.run("Tea").result;
  const data = (steps: unknown) => ["plan", { id: "plan", steps }];
  assertEquals(shown, [data([boil, pour]), data([])]);
  assertEquals(model.requests.map(({ messages }) => lines(messages).filter((line) => line.includes("Your plan"))), [
    [],
    ["turn Your plan:\n- [done] Boil water\n- [active] Pour"],
    [],
  ]);
  assertEquals(lines(messages).some((line) => line.includes("Your plan")), false);
});

Deno.test("plan() keeps the plan for the session, and shows it when the session is opened", async () => {
  const { model, shown, assistant } = planning(update([pour]), "Later.", "Go on.");
  const store = memory();
  const { session } = await assistant.run({ prompt: "Tea", session: "s", store }).result;
  shown.length = 0;
  await assistant.run({ prompt: "And?", session, store }).result;
  assertEquals(shown, [["plan", { id: "plan", steps: [pour] }]]);
  assertEquals(lines(model.requests[2]?.messages ?? []).at(-1), "turn Your plan:\n- [active] Pour");
});

Deno.test("plan() refuses a plan that is not valid, and keeps the old one", async () => {
  const wrong = [
    [[pour, pour, pour], "expected at most 2 steps"],
    [[{ task: "x", status: "soon" }], "expected steps with a `task`, and a `status` of pending, active, done"],
    [[null], "expected steps with a `task`, and a `status` of pending, active, done"],
    ["tea", "expected `steps`, an array"],
  ] as const;
  for (const [steps, reason] of wrong) {
    const { model, shown, assistant } = planning(update([pour]), update(steps), "Done.");
    const { messages } = await assistant.run("Tea").result;
    const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
    assertEquals(results.map(({ status }) => status), ["ok", "error"]);
    assertEquals(JSON.stringify(results[1]?.parts).includes(reason), true);
    assertEquals(shown.length, 1);
    assertEquals(lines(model.requests[2]?.messages ?? []).at(-1), "turn Your plan:\n- [active] Pour");
  }
});
