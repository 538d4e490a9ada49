/**
 * The responses of both of OpenAI's APIs: how they end, and the tokens that they report.
 */
import { agent, continueWith, type Middleware, reply, serve, user } from "@jizai/jizai";
import { scripted, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import OpenAI from "npm:openai@7.57.0";
import { lookAndDrop } from "../support/asking.ts";
import { reaching } from "../support/chat.ts";

/** Serves an agent with both of OpenAI's APIs, and returns OpenAI's client of it. */
function clientOf(model: ScriptedModel, use: readonly Middleware[] = []): OpenAI {
  const app = serve(agent({ model, tools: lookAndDrop().tools, use }), { wires: [chatCompletions(), responses()] });
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

Deno.test("responses() reports the message that was cut as incomplete, and those before it as completed", async () => {
  const steps = [{ text: "Let me look.", calls: [["look", { table: "a" }]] }, {
    text: "The first half of",
    finish: "length",
  }] as const;
  const statusesOf = (items: readonly OpenAI.Responses.ResponseOutputItem[]) =>
    items.map((item) => item.type === "message" && item.status);
  const { output } = await clientOf(scripted(...steps)).responses.create({ input: "Hi" });
  assertEquals(statusesOf(output), ["completed", "incomplete"]);
  const stream = await clientOf(scripted(...steps)).responses.create({ input: "Hi", stream: true });
  const events = await Array.fromAsync(stream);
  const items = events.flatMap((event) => event.type === "response.output_item.done" ? [event.item] : []);
  assertEquals(statusesOf(items), ["completed", "incomplete"]);
});

Deno.test("responses() reports an answer as completed if only an earlier turn was cut", async () => {
  const model = scripted({ calls: [["look", { table: "a" }]], finish: "length" }, "Done.");
  const { status, incomplete_details, output_text } = await clientOf(model).responses.create({ input: "Hi" });
  assertEquals([status, incomplete_details, output_text], ["completed", undefined, "Done."] as never);
});

const paint = { name: "paint", description: "Paints", parameters: { type: "object" } };
const paints = (input: number) => ({ calls: [["paint", {}]], usage: { input, output: 10, cached: 1 } } as const);

Deno.test("chatCompletions() reports the tokens of each response of a run that its client's tools pause", async () => {
  const client = clientOf(scripted(paints(100), paints(200), { text: "Done.", usage: { input: 300, output: 20 } }));
  const tools = [{ type: "function" as const, function: paint }];
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "Hi" }];
  const reported = [];
  for (let responses = 0; responses < 3; responses++) {
    const { choices: [choice], usage } = await client.chat.completions.create({ model: "any", messages, tools });
    reported.push([usage?.prompt_tokens, usage?.completion_tokens, usage?.prompt_tokens_details?.cached_tokens]);
    if (choice) messages.push(choice.message);
    const calls = choice?.message.tool_calls ?? [];
    messages.push(...calls.map(({ id }) => ({ role: "tool" as const, tool_call_id: id, content: "wet" })));
  }
  assertEquals(reported, [[100, 10, 1], [200, 10, 1], [300, 20, 0]]);
});

Deno.test("chatCompletions() reports at the end of a stream the tokens of this response", async () => {
  const client = clientOf(scripted(paints(100), { text: "Done.", usage: { input: 300, output: 20 } }));
  const tools = [{ type: "function" as const, function: paint }];
  const { choices: [choice] } = await client.chat.completions.create({
    model: "any",
    messages: [{ role: "user", content: "Hi" }],
    tools,
  });
  const stream = await client.chat.completions.create({
    model: "any",
    messages: [{ role: "tool", tool_call_id: choice?.message.tool_calls?.[0]?.id ?? "", content: "wet" }],
    tools,
    stream: true,
    stream_options: { include_usage: true },
  });
  const { usage } = (await Array.fromAsync(stream)).at(-1) ?? {};
  assertEquals([usage?.prompt_tokens, usage?.completion_tokens, usage?.total_tokens], [300, 20, 320]);
});

Deno.test("responses() reports the tokens of each response of a run that an approval pauses", async () => {
  const drops = { calls: [["drop", { table: "a" }]], usage: { input: 100, output: 10, cached: 1 } } as const;
  const client = clientOf(scripted(drops, { text: "Done.", usage: { input: 300, output: 20 } }));
  const first = await client.responses.create({ input: "Hi" });
  const [asked] = first.output;
  const answer = { type: "mcp_approval_response", approval_request_id: asked?.id ?? "", approve: true } as const;
  const second = await client.responses.create({ input: [answer] });
  assertEquals([first, second].map(({ usage }) => [usage?.input_tokens, usage?.output_tokens, usage?.total_tokens]), [
    [100, 10, 110],
    [300, 20, 320],
  ]);
});

/** Replacements of the second turn, in which the model is not asked. */
const secondTurns: Readonly<Record<string, NonNullable<Middleware["turn"]>>> = {
  "is answered by a hook": () => Promise.resolve({ response: reply("Whole answer."), results: [] }),
  "is ended by a hook": ({ run }) => {
    throw run.end("enough");
  },
};

/** Serves an agent whose first turn is cut. `second` replaces the second turn. */
function clientOfCut(second: NonNullable<Middleware["turn"]>): OpenAI {
  let turns = 0;
  const use: Middleware = {
    name: "continuing",
    turn: (ctx, next) => ++turns === 2 ? second(ctx, next) : next(),
    stop: (_, next) => turns === 1 ? Promise.resolve(continueWith(user("Go on"))) : next(),
  };
  return clientOf(scripted({ text: "The first half of", finish: "length" }), [use]);
}

for (const [title, second] of Object.entries(secondTurns)) {
  Deno.test(`responses() reports a response as completed if its last turn ${title} after one that was cut`, async () => {
    const { status, incomplete_details } = await clientOfCut(second).responses.create({ input: "Hi" });
    assertEquals([status, incomplete_details], ["completed", undefined] as never);
    const events = await Array.fromAsync(await clientOfCut(second).responses.create({ input: "Hi", stream: true }));
    assertEquals(events.at(-1)?.type, "response.completed");
  });

  Deno.test(`chatCompletions() reports the finish reason "stop" if the last turn ${title} after one that was cut`, async () => {
    const request = { model: "any", messages: [{ role: "user" as const, content: "Hi" }] };
    const { choices: [choice] } = await clientOfCut(second).chat.completions.create(request);
    assertEquals(choice?.finish_reason, "stop");
    const chunks = await Array.fromAsync(
      await clientOfCut(second).chat.completions.create({ ...request, stream: true }),
    );
    assertEquals(chunks.at(-1)?.choices[0]?.finish_reason, "stop");
  });
}
