import { agent, continueWith, type Middleware, reply, serve, user } from "@jizai/jizai";
import { scripted, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals, assertRejects } from "@std/assert";
import OpenAI, { APIError } from "npm:openai@7.57.0";
import { lookAndDrop } from "../support/asking.ts";
import { reaching } from "../support/chat.ts";
import { post } from "../support/requests.ts";

/** The effect of a parameter: it works, is ignored, or causes a refusal for these values, with the message `of`. */
type Does = "works" | "is left alone" | Refused;

interface Refused {
  readonly refused: readonly unknown[];
  readonly fine?: readonly unknown[];
  readonly of?: string;
}

/** The effect of each parameter. */
type Table<T> = { readonly [K in keyof Required<T>]: Does };

const never = (...refused: readonly unknown[]) => ({ refused });
const format = { refused: [{ type: "grammar" }], fine: [{ type: "text" }] };
const choice = { refused: ["required", { type: "function", function: { name: "a" } }], fine: ["auto", "none"] };

const chat: Table<OpenAI.Chat.ChatCompletionCreateParams> = {
  messages: "works",
  model: "is left alone",
  stream: "works",
  stream_options: "works",
  tools: { refused: [[{ type: "custom", custom: { name: "a" } }]], fine: [[]], of: "tools.0.type" },
  tool_choice: choice,
  response_format: { ...format, of: "response_format.type" },
  modalities: { refused: [["text", "audio"]], fine: [["text"]], of: "modalities.1" },
  n: { refused: [2, 0], fine: [1] },
  logprobs: { refused: [true], fine: [false] },
  top_logprobs: { refused: [3], fine: [0] },
  parallel_tool_calls: { refused: [false], fine: [true] },
  stop: never("END", ["END"]),
  logit_bias: never({ "50256": -100 }),
  audio: never({ voice: "alloy", format: "mp3" }),
  functions: never([{ name: "a" }]),
  function_call: never("auto"),
  web_search_options: never({}),
  frequency_penalty: "is left alone",
  max_completion_tokens: "is left alone",
  max_tokens: "is left alone",
  metadata: "is left alone",
  moderation: "is left alone",
  prediction: "is left alone",
  presence_penalty: "is left alone",
  prompt_cache_key: "is left alone",
  prompt_cache_options: "is left alone",
  prompt_cache_retention: "is left alone",
  reasoning_effort: "is left alone",
  safety_identifier: "is left alone",
  seed: "is left alone",
  service_tier: "is left alone",
  store: "is left alone",
  temperature: "is left alone",
  top_p: "is left alone",
  user: "is left alone",
  verbosity: "is left alone",
};

const response: Table<OpenAI.Responses.ResponseCreateParams> = {
  input: "works",
  instructions: "works",
  model: "is left alone",
  previous_response_id: "works",
  stream: "works",
  tools: { refused: [[{ type: "web_search" }]], fine: [[]], of: "tools.0.type" },
  tool_choice: choice,
  text: {
    refused: format.refused.map((format) => ({ format })),
    fine: [{ format: { type: "text" } }, { verbosity: "low" }],
    of: "text.format.type",
  },
  top_logprobs: "is left alone",
  parallel_tool_calls: { refused: [false], fine: [true] },
  background: { refused: [true], fine: [false] },
  prompt: never({ id: "pmpt_1" }),
  conversation: never("conv_1", { id: "conv_1" }),
  access_programs: "is left alone",
  context_management: "is left alone",
  image: "is left alone",
  include: "is left alone",
  max_output_tokens: "is left alone",
  max_tool_calls: "is left alone",
  metadata: "is left alone",
  moderation: "is left alone",
  prompt_cache_key: "is left alone",
  prompt_cache_options: "is left alone",
  prompt_cache_retention: "is left alone",
  reasoning: "is left alone",
  safety_identifier: "is left alone",
  service_tier: "is left alone",
  store: "is left alone",
  stream_options: "is left alone",
  temperature: "is left alone",
  top_p: "is left alone",
  truncation: "is left alone",
  user: "is left alone",
};

/** The remaining parameters of either API, which are refused. */
const strange = { previous_response_id: never("resp_1"), conversation: never("conv_1") };

const tables = {
  "chat/completions": {
    table: { ...chat, ...strange },
    body: { model: "any", messages: [{ role: "user", content: "Hi" }] },
  },
  responses: { table: response, body: { model: "any", input: "Hi" } },
} as const;

for (const [path, { table, body }] of Object.entries(tables)) {
  for (const [name, does] of Object.entries<Does>(table)) {
    if (does === "works") continue; // other tests cover it
    const title = does === "is left alone" ? "leaves alone" : "refuses what it does not do of";
    Deno.test(`OpenAI's ${path} ${title} ${name}`, async () => {
      const app = serve(agent({ model: () => scripted("Hello.") }), { wires: [chatCompletions(), responses()] });
      const { refused, fine, of = name }: Refused = typeof does === "string" ? { refused: [], fine: ["x", 1] } : does;
      for (const value of [null, ...fine ?? []]) {
        const reported = await post(app, `/v1/${path}`, { ...body, [name]: value });
        assertEquals([name, value, reported.status], [name, value, 200]);
        await reported.body?.cancel();
      }
      for (const value of refused) {
        const reported = await post(app, `/v1/${path}`, { ...body, [name]: value });
        const { error } = await reported.json();
        assertEquals([value, reported.status, error.type, error.code, error.param], [
          value,
          400,
          "invalid_request_error",
          "invalid",
          of,
        ]);
      }
    });
  }
}

const contents = {
  "chat/completions": [
    { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: { data: "", format: "mp3" } }] }] },
    { messages: [{ role: "user", content: [{ type: "file", file: { file_id: "f1" } }] }] },
  ],
  responses: [
    { input: [{ role: "user", content: [{ type: "input_file", file_id: "f1" }] }] },
    { input: [{ role: "user", content: [{ type: "input_image", file_id: "f1" }] }] },
    { input: [{ type: "item_reference", id: "msg_1" }] },
  ],
};
for (const [path, bodies] of Object.entries(contents)) {
  Deno.test(`OpenAI's ${path} refuses content that it cannot read`, async () => {
    const app = serve(agent({ model: scripted() }), { wires: [chatCompletions(), responses()] });
    for (const body of bodies) {
      const reported = await post(app, `/v1/${path}`, body);
      const { error } = await reported.json();
      assertEquals([reported.status, /^(messages|input)\.0/.test(error.param)], [400, true]);
    }
  });
}

Deno.test("OpenAI's client receives the reason why a request is refused or has failed", async () => {
  const app = serve(agent({ model: scripted() }), {
    wires: [chatCompletions(), responses()],
    owner: (c) => {
      if (c.req.header("who") === "me") throw new Error("the database is down");
      return c.req.header("who");
    },
  });
  const client = (who: string) =>
    new OpenAI({
      apiKey: "sk-none",
      baseURL: "http://localhost/v1",
      fetch: reaching(app),
      maxRetries: 0,
      defaultHeaders: { who },
    });
  const refusal = async (asked: Promise<unknown>): Promise<readonly unknown[]> => {
    const { status, type, code, param, message } = await assertRejects(() => asked, APIError);
    return [status, type, code, param, message];
  };
  const messages = [{ role: "user" as const, content: "Hi" }];
  const json_schema = { name: "city", schema: { type: "object" } };
  const invalid = [400, "invalid_request_error", "invalid"];
  assertEquals(
    await refusal(
      client("ada").chat.completions.parse({
        model: "any",
        messages,
        response_format: { type: "json_schema", json_schema: { ...json_schema, schema: [] as never } },
      }),
    ),
    [
      ...invalid,
      "response_format.json_schema.schema",
      "400 Cannot read response_format.json_schema.schema: expected an object",
    ],
  );
  assertEquals(
    (await refusal(
      client("ada").responses.parse({
        input: "Hi",
        text: { format: { type: "json_schema", ...json_schema, schema: [] as never } },
      }),
    )).slice(0, 4),
    [...invalid, "text.format.schema"],
  );
  assertEquals(await refusal(client("").responses.create({ input: "Hi" })), [
    403,
    "invalid_request_error",
    "unidentified",
    null,
    "403 Cannot serve the request: it has no owner",
  ]);
  assertEquals(await refusal(client("me").chat.completions.create({ model: "any", messages })), [
    500,
    "server_error",
    "internal",
    null,
    "500 The request failed.",
  ]);
});

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
