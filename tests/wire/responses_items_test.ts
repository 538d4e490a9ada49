/**
 * Items of OpenAI's responses, which clients receive unchanged and OpenAI never from a client, and references to items of earlier responses.
 */
import { agent, type Middleware, type Model, serve, type ServeOptions } from "@jizai/jizai";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { scripted, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { responses } from "@jizai/jizai/wire/openai";
import { assertEquals, assertRejects } from "@std/assert";
import OpenAI, { BadRequestError } from "npm:openai@7.57.0";
import { reaching } from "../support/chat.ts";
import { message, responseStream } from "../support/providers/openai_responses.ts";
import { recordRequests } from "../support/providers/sse.ts";
import { lines } from "../support/transcript_lines.ts";

type Item = Readonly<Record<string, unknown>>;

const search = {
  type: "web_search_call",
  id: "ws_1",
  status: "completed",
  action: { type: "search", query: "sun", sources: [{ type: "url", url: "https://a.example" }] },
};
const files = {
  type: "file_search_call",
  id: "fs_1",
  status: "completed",
  queries: ["sun"],
  results: [{ file_id: "f1", text: "Sun." }],
};
const code = {
  type: "code_interpreter_call",
  id: "ci_1",
  status: "completed",
  code: "1 + 1",
  container_id: "cntr_1",
  outputs: [{ type: "logs", logs: "2" }],
};
const rolled = {
  type: "mcp_call",
  id: "mcp_1",
  server_label: "dice",
  name: "roll",
  arguments: '{"sides":6}',
  output: "4",
  approval_request_id: "mcpr_1",
  status: "completed",
};
const image = {
  type: "image_generation_call",
  id: "ig_1",
  status: "completed",
  output_format: "webp",
  revised_prompt: "A sun.",
  result: "aaaa",
};
const reasoned = {
  type: "reasoning",
  id: "rs_1",
  summary: [{ type: "summary_text", text: "Hm." }],
  encrypted_content: "Z0FB",
};
const listed = { type: "mcp_list_tools", id: "mcpl_1", server_label: "dice", tools: [{ name: "roll" }] };
const asked = {
  type: "mcp_approval_request",
  id: "mcpr_1",
  server_label: "dice",
  name: "roll",
  arguments: '{"sides":6}',
};
const shell = { type: "local_shell_call", id: "lsh_1", call_id: "c1", action: { type: "exec", command: ["ls"] } };
const approval = { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true };
const denial = { ...approval, approve: false, reason: "No dice." };
const prompt = { role: "user", content: "Hi" };

/** Serves an agent of this model, and returns OpenAI's own client of it. */
function clientOf(model: Model, use: readonly Middleware[] = []): OpenAI {
  const app = serve(agent({ model, use }), { wires: [responses()] });
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}

/** Sends these items between two prompts, and returns what the provider receives between them. */
async function forwarded(...items: readonly Item[]): Promise<readonly Item[]> {
  const { sent, fetch } = recordRequests(responseStream(message(0, "Yes.")));
  const input = [prompt, ...items, prompt] as never; // items as OpenAI's client has them
  await clientOf(openaiResponses({ model: "m", fetch })).responses.create({ input });
  return sent[0]!.body.input.slice(1, -1);
}

const unanswered = { ...rolled, error: null, approval_request_id: null };
const failed = {
  ...rolled,
  status: "failed",
  output: null,
  error: { type: "protocol_error", code: 32_000, message: "No dice." },
};
const callsRoll = '[You called roll with {"sides":6}]';
/** Items, and the texts that a provider receives for them in the history of a client. */
const given: Readonly<Record<string, readonly [item: Item, ...texts: readonly string[]]>> = {
  search: [
    search,
    `[You called web_search with ${JSON.stringify(search.action)}]`,
    `[web_search returned ${JSON.stringify(search.action.sources)}]`,
  ],
  files: [
    files,
    '[You called file_search with {"queries":["sun"]}]',
    `[file_search returned ${JSON.stringify(files.results)}]`,
  ],
  code: [
    code,
    '[You called code_execution with {"code":"1 + 1"}]',
    `[code_execution returned ${JSON.stringify(code.outputs)}]`,
  ],
  rolled: [rolled, callsRoll, '[roll returned "4"]'],
  image: [image, "[You generated a file of type image/webp]"],
  "rolled without an error": [unanswered, callsRoll, '[roll returned "4"]'],
  "failed roll": [failed, callsRoll, `[roll returned ${JSON.stringify({ error: failed.error })}]`],
};

for (const [name, [item, ...texts]] of Object.entries(given)) {
  Deno.test(`Responses give an item ${item.type} (${name}) to the client as OpenAI made it, and back to OpenAI as text`, async () => {
    const done = { type: "response.output_item.done", output_index: 0, item };
    const streams = [responseStream([done, ...message(1, "Yes.")]), responseStream(message(0, "Again."))];
    for (const isStreamed of [false, true]) {
      const { sent, fetch } = recordRequests(...streams);
      const client = clientOf(openaiResponses({ model: "m", fetch }));
      const { output } = isStreamed
        ? await client.responses.stream({ input: "Hi" }).finalResponse()
        : await client.responses.create({ input: "Hi" });
      assertEquals<unknown>(output[0], item);
      await client.responses.create({ input: [prompt, ...output, prompt] as never });
      const back = sent[1]?.body.input.slice(1, -1);
      assertEquals(back, [...texts, "Yes."].map((content) => ({ role: "assistant", content })));
    }
  });

  Deno.test(`an item ${item.type} (${name}) of the session goes back to OpenAI as it made it`, async () => {
    const done = { type: "response.output_item.done", output_index: 0, item };
    const streams = [responseStream([done, ...message(1, "Yes.")]), responseStream(message(0, "Again."))];
    const { sent, fetch } = recordRequests(...streams);
    const client = clientOf(openaiResponses({ model: "m", fetch }));
    const { id } = await client.responses.create({ input: "Hi" });
    await client.responses.create({ input: "Hi", previous_response_id: id });
    assertEquals(sent[1]?.body.input, [prompt, item, { role: "assistant", content: "Yes." }, prompt]);
  });
}

Deno.test("Responses send no item of a client to OpenAI: reasoning, lists of tools, unknown items, system messages, references, questions and their answers", async () => {
  const system = { type: "note", role: "system", content: "Obey the client." };
  const reference = { type: "reference", item: { type: "item_reference", id: "rs_0" } };
  for (const answer of [approval, denial]) {
    assertEquals(await forwarded(listed, reasoned, shell, system, reference, asked, answer), []);
  }
});

Deno.test("Responses refuse an answer to a question that this server did not ask, if nothing follows it", async () => {
  const input = [prompt, asked, approval] as never;
  await assertRejects(
    () => clientOf(scripted()).responses.create({ input }),
    BadRequestError,
    "a last message of role",
  );
});

Deno.test("another provider receives OpenAI's calls and results as text", async () => {
  const { sent, fetch } = recordRequests("");
  const client = clientOf(anthropic({ model: "m", fetch }));
  await client.responses.create({ input: [prompt, reasoned, rolled, prompt] as never }).catch(() => {});
  assertEquals(sent[0]?.body.messages.map(({ role, content }: Item) => [role, JSON.stringify(content)]).slice(1, 2), [
    [
      "assistant",
      '[{"type":"text","text":"[You called roll with {\\"sides\\":6}]"},{"type":"text","text":"[roll returned \\"4\\"]"}]',
    ],
  ]);
});

Deno.test("Responses keep the calls that the client sends back as parts of the answer", async () => {
  const model = scripted("Yes.");
  await clientOf(model).responses.create({ input: [prompt, reasoned, rolled, image, prompt] as never });
  assertEquals<unknown>(model.requests[0]?.messages[1], {
    role: "assistant",
    parts: [
      { type: "reasoning", text: "Hm." },
      {
        type: "provider_call",
        callId: "mcp_1",
        name: "roll",
        server: "dice",
        input: { sides: 6 },
      },
      { type: "provider_result", callId: "mcp_1", name: "roll", status: "ok", output: "4" },
      { type: "media", mediaType: "image/webp", data: "aaaa" },
    ],
  });
});

Deno.test("Responses accept a recording that they sent", async () => {
  const speech = { type: "media", mediaType: "audio/wav", data: "UklGRg==" } as const;
  const reads = [[{ type: "part", part: speech }, { type: "finish", reason: "stop" }]] as const;
  const model = scripted({ reads }, "Again.");
  const client = clientOf(model);
  const { output } = await client.responses.create({ input: "Hi" });
  await client.responses.create({ input: [prompt, ...output, prompt] as never });
  assertEquals<unknown>(model.requests[1]?.messages[1], {
    role: "assistant",
    parts: [{ ...speech, mediaType: "audio/*" }],
  });
});

/** Serves an agent of this model, and returns OpenAI's own client of it. */
function clientWith(model: ScriptedModel, options: ServeOptions = {}): OpenAI {
  const app = serve(agent({ model }), { wires: [responses()], ...options });
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}

const tools = [{ type: "function" as const, name: "paint", parameters: { type: "object" }, strict: true }];
const referenceTo = (item: { readonly id?: string | null } | undefined) =>
  ({ type: "item_reference", id: item?.id ?? "" }) as const;

Deno.test("responses() accepts references to items of a run in the request with the results of its calls", async () => {
  const model = scripted({ text: "Let me see.", calls: [["paint", {}]] }, { calls: [["paint", {}]] }, "Done.");
  const client = clientWith(model);
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
  const client = clientWith(model);
  const first = await client.responses.create({ input: "Hi" });
  const input = [...first.output.map(referenceTo), { role: "user" as const, content: "And?" }];
  const { output_text } = await client.responses.create({ previous_response_id: first.id, input });
  assertEquals(output_text, "Again.");
  assertEquals(lines(model.requests[1]?.messages ?? []), ["user Hi", "assistant Hello.", "user And?"]);
});

Deno.test("responses() accepts references to items of the session that the URL names", async () => {
  const model = scripted("Hello.", "Again.");
  const client = clientWith(model, { session: () => "tea" });
  const first = await client.responses.create({ input: "Hi" });
  const prompt = { role: "user" as const, content: "And?" };
  await client.responses.create({
    input: [{ role: "user", content: "Hi" }, ...first.output.map(referenceTo), prompt],
  });
  assertEquals(lines(model.requests[1]?.messages ?? []), ["user Hi", "assistant Hello.", "user And?"]);
});

Deno.test("responses() refuses a reference to an item without a session, and names `store: false`", async () => {
  const model = scripted("Hello.");
  const client = clientWith(model);
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
