import { agent, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals, assertRejects } from "@std/assert";
import OpenAI, { APIError } from "npm:openai@7.57.0";
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
