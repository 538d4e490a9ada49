import { agent, serve, type ServeOptions } from "@jizai/jizai";
import { scripted, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { responses } from "@jizai/jizai/wire/openai";
import { assertEquals, assertRejects } from "@std/assert";
import OpenAI, { BadRequestError } from "npm:openai@7.57.0";
import { reaching } from "../support/chat.ts";
import { lines } from "../support/transcript_lines.ts";

/** Serves an agent of this model, and returns OpenAI's own client of it. */
function clientOf(model: ScriptedModel, options: ServeOptions = {}): OpenAI {
  const app = serve(agent({ model }), { wires: [responses()], ...options });
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}

const tools = [{ type: "function" as const, name: "paint", parameters: { type: "object" }, strict: true }];
const referenceTo = (item: { readonly id?: string | null } | undefined) =>
  ({ type: "item_reference", id: item?.id ?? "" }) as const;

Deno.test("responses() accepts references to items of a run in the request with the results of its calls", async () => {
  const model = scripted({ text: "Let me see.", calls: [["paint", {}]] }, { calls: [["paint", {}]] }, "Done.");
  const client = clientOf(model);
  const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Hi" }];
  const texts = [];
  for (let requests = 0; requests < 3; requests++) {
    const { output, output_text } = await client.responses.create({ input, tools });
    texts.push(output_text);
    input.push(...output.map(referenceTo));
    for (const item of output) {
      if (item.type === "function_call") {
        input.push({ type: "function_call_output", call_id: item.call_id, output: "wet" });
      }
    }
  }
  assertEquals(texts, ["Let me see.", "", "Done."]);
  assertEquals(lines(model.requests[2]?.messages ?? []), [
    "user Hi",
    "assistant Let me see.",
    "call paint",
    "ok wet",
    "call paint",
    "ok wet",
  ]);
});

Deno.test("responses() accepts references to items of the session that a request continues", async () => {
  const model = scripted("Hello.", "Again.");
  const client = clientOf(model);
  const first = await client.responses.create({ input: "Hi" });
  const input = [...first.output.map(referenceTo), { role: "user" as const, content: "And?" }];
  const { output_text } = await client.responses.create({ previous_response_id: first.id, input });
  assertEquals(output_text, "Again.");
  assertEquals(lines(model.requests[1]?.messages ?? []), ["user Hi", "assistant Hello.", "user And?"]);
});

Deno.test("responses() accepts references to items of the session that the URL names", async () => {
  const model = scripted("Hello.", "Again.");
  const client = clientOf(model, { session: () => "tea" });
  const first = await client.responses.create({ input: "Hi" });
  const prompt = { role: "user" as const, content: "And?" };
  await client.responses.create({
    input: [{ role: "user", content: "Hi" }, ...first.output.map(referenceTo), prompt],
  });
  assertEquals(lines(model.requests[1]?.messages ?? []), ["user Hi", "assistant Hello.", "user And?"]);
});

Deno.test("responses() refuses a reference to an item without a session, and names `store: false`", async () => {
  const model = scripted("Hello.");
  const client = clientOf(model);
  const first = await client.responses.create({ input: "Hi" });
  const prompt = { role: "user" as const, content: "Hi" };
  const input = [prompt, ...first.output.map(referenceTo), prompt];
  const error = await assertRejects(() => client.responses.create({ input }), BadRequestError);
  assertEquals([error.param, error.message, model.requests.length], [
    "input.1",
    "400 Cannot read input.1: expected the item in place of an item_reference, as clients send it with `store: false`",
    1,
  ]);
});
