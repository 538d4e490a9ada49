import { agent, serve } from "@jizai/jizai";
import { scripted, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import OpenAI from "npm:openai@7.57.0";
import { lookAndDrop } from "../support/asking.ts";
import { reaching } from "../support/chat.ts";

/** Serves an agent with both of OpenAI's APIs, and returns OpenAI's client of it. */
function clientOf(model: ScriptedModel): OpenAI {
  const app = serve(agent({ model, tools: lookAndDrop().tools }), { wires: [chatCompletions(), responses()] });
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}

const reasons = [["length", "max_output_tokens"], ["filter", "content_filter"]] as const;

for (const [finish, reason] of reasons) {
  Deno.test(`responses() reports an answer with the finish reason "${finish}" as incomplete`, async () => {
    const model = scripted({ text: "The first half of", finish }, { text: "The first half of", finish });
    const client = clientOf(model);
    const { status, incomplete_details, output_text } = await client.responses.create({ input: "Hi" });
    assertEquals([status, incomplete_details, output_text], ["incomplete", { reason }, "The first half of"]);
    const events = await Array.fromAsync(await client.responses.create({ input: "Hi", stream: true }));
    const end = events.at(-1);
    assertEquals(end?.type === "response.incomplete" && [end.response.status, end.response.incomplete_details], [
      "incomplete",
      { reason },
    ]);
  });
}

Deno.test("responses() reports an answer as completed if only an earlier turn was cut", async () => {
  const model = scripted({ calls: [["look", { table: "a" }]], finish: "length" }, "Done.");
  const { status, incomplete_details, output_text } = await clientOf(model).responses.create({ input: "Hi" });
  assertEquals([status, incomplete_details, output_text], ["completed", undefined, "Done."] as never);
});
