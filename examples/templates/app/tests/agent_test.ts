import { serve } from "@jizai/jizai";
import assert from "node:assert/strict";
import { test } from "node:test";
import { assistant } from "../src/agent.ts";

const deployed = assistant();
const vars = {}; // no key: the demo model answers

test("the agent looks up the weather of each city", async () => {
  const { status, text } = await deployed.run({ prompt: "Weather in Kyoto and Oslo?", vars }).result;
  assert.deepEqual([status, text], ["done", "It is sunny in Kyoto. It is sunny in Oslo."]);
});

test("the agent sends a postcard when a person approves", async () => {
  const asked = await deployed.run({ prompt: "Send a postcard", vars }).result;
  assert.equal(asked.status, "paused");
  const answers = asked.questions.map(({ callId = "" }) => ({ callId, type: "approve" as const }));
  const { text } = await deployed.resume({ session: asked.session, answers, vars }).result;
  assert.equal(text, "Sent a postcard of 15 characters.");
});

test("the served agent streams its answer", async () => {
  const app = serve(deployed, { vars: () => vars });
  const response = await app.request("/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "Weather in Kyoto?" }),
  });
  assert.equal(response.status, 200);
  const stream = await response.text();
  assert.match(stream, /"type":"run.finished".*It is sunny in Kyoto\./);
  assert.doesNotMatch(stream, /You know the weather/); // no client reads the instructions
});
