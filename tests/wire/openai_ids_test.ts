import { agent, serve } from "@jizai/jizai";
import { scripted, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assert, assertEquals } from "@std/assert";
import OpenAI from "npm:openai@7.57.0";
import { lookAndDrop } from "../support/asking.ts";
import { reaching } from "../support/chat.ts";
import { lines } from "../support/transcript_lines.ts";

type Request = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, "stream">;
type Response = Pick<OpenAI.Responses.Response, "id" | "output" | "output_text">;

/** Serves an agent with both of OpenAI's APIs, and returns OpenAI's client of it. */
function clientOf(model: ScriptedModel): OpenAI {
  const options = { wires: [chatCompletions(), responses()] };
  const app = serve(agent({ model, tools: lookAndDrop().tools }), options);
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}

const ways: Readonly<Record<string, (client: OpenAI, request: Request) => Promise<Response>>> = {
  "as a whole": async (client, request) => await client.responses.create(request),
  "streamed": async (client, request) => await client.responses.stream(request).finalResponse() as Response,
};

/** Returns the ids of responses and of their items. */
function idsOf(all: readonly Response[]): readonly unknown[] {
  return all.flatMap(({ id, output }) => [id, ...output.map((item) => item.id)]);
}

const declared = { type: "function" as const, name: "paint", parameters: { type: "object" }, strict: true };

for (const [way, create] of Object.entries(ways)) {
  Deno.test(`responses() gives each response of a run that an approval pauses, ${way}, and its items ids of their own`, async () => {
    const model = scripted(
      { text: "Let me drop it.", calls: [["drop", { table: "a" }]] },
      { text: "And this one.", calls: [["drop", { table: "b" }]] },
      "Done.",
      "Again.",
    );
    const client = clientOf(model);
    const all = [await create(client, { input: "Go" })];
    while (all.length < 3) {
      const { id, output } = all.at(-1) ?? { output: [] };
      const asked = output.find(({ type }) => type === "mcp_approval_request");
      const answer = { type: "mcp_approval_response", approval_request_id: asked?.id ?? "", approve: true } as const;
      all.push(await create(client, { ...(id !== undefined && { previous_response_id: id }), input: [answer] }));
    }
    assertEquals(all.map(({ output_text }) => output_text), ["Let me drop it.", "And this one.", "Done."]);
    const ids = idsOf(all);
    assertEquals([ids.length, new Set(ids).size], [8, 8]);
    const last = await create(client, { previous_response_id: all[0]?.id ?? "", input: "More" }); // each of them names the session
    assertEquals([last.output_text, lines(model.requests[3]?.messages ?? []).at(-2)], ["Again.", "assistant Done."]);
  });

  Deno.test(`responses() gives each response of a run that waits for its client's tools, ${way}, and its items ids of their own`, async () => {
    const client = clientOf(scripted({ text: "See.", calls: [["paint", {}]] }, "It is wet."));
    const first = await create(client, { input: "Go", tools: [declared] });
    const call = first.output.find(({ type }) => type === "function_call");
    const call_id = call?.type === "function_call" ? call.call_id : "";
    const result = { type: "function_call_output", call_id, output: "wet" } as const;
    const second = await create(client, { previous_response_id: first.id, input: [result], tools: [declared] });
    assertEquals([first.output_text, second.output_text], ["See.", "It is wet."]);
    const ids = idsOf([first, second]);
    assertEquals([ids.length, new Set(ids).size], [5, 5]);
  });
}

Deno.test("responses() gives a response that is sent again for an idempotency key the same ids", async () => {
  const client = clientOf(scripted("Hello.", "Never asked."));
  const options = { headers: { "idempotency-key": "k1" } };
  const all = [];
  for (let sent = 0; sent < 2; sent++) all.push(await client.responses.create({ input: "Hi" }, options));
  const [first, second] = all.map((response) => idsOf([response]));
  assertEquals(first, second);
});

Deno.test("chatCompletions() gives each completion of a run that its client's tools pause an id of its own", async () => {
  const model = scripted({ calls: [["paint", {}]] }, { calls: [["paint", {}]] }, "Done.");
  const client = clientOf(model);
  const { name, parameters } = declared;
  const tools = [{ type: "function" as const, function: { name, parameters } }];
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "Hi" }];
  const ids = new Set<string>();
  for (let sent = 0; sent < 2; sent++) {
    const { id, choices: [choice] } = await client.chat.completions.create({ model: "any", messages, tools });
    ids.add(id);
    assert(choice);
    messages.push(choice.message);
    for (const call of choice.message.tool_calls ?? []) {
      messages.push({ role: "tool", tool_call_id: call.id, content: "wet" });
    }
  }
  const chunks = await Array.fromAsync(
    await client.chat.completions.create({ model: "any", messages, tools, stream: true }),
  );
  const streamed = new Set(chunks.map(({ id }) => id));
  assertEquals([ids.size, streamed.size, ids.union(streamed).size], [2, 1, 3]);
});
