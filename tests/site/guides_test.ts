import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { demo } from "../../examples/guides/model.ts";
import { eventsOf, first, post } from "../support/requests.ts";
import { load } from "./guides.ts";

Deno.test("ask_a_person: a large refund waits for a person, a small one does not", async () => {
  const { default: app } = await load("ask_a_person", demo);
  const small = first("run.finished", await eventsOf(post(app, "/runs", { prompt: "refund order=A7 amount=50" })));
  assertEquals(small.text, "Refunded 50 for order A7.");
  const events = await eventsOf(post(app, "/runs", { prompt: "refund order=A7 amount=150" }));
  const { session } = first("run.started", events);
  const answers = first("run.paused", events).questions.map(({ callId }) => ({ callId, type: "approve" }));
  const end = first("run.finished", await eventsOf(post(app, `/sessions/${session}/answers`, { answers })));
  assertEquals(end.text, "Refunded 150 for order A7.");
});

Deno.test("ask_a_person: rules decide by the name of a tool", async () => {
  const model = scripted({ calls: [["read", { path: "a" }], ["remove", { path: "a" }]] });
  const { assistant } = await load("ask_a_person", model, 1);
  const { questions } = await assistant.run("Tidy up").result;
  assertEquals(questions.map(({ questions }) => questions), [["Delete this file?"]]);
});
