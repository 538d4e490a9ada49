import { agent, type Model, serve, tool } from "@jizai/jizai";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { gemini } from "@jizai/jizai/model/gemini";
import { openai } from "@jizai/jizai/model/openai";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import { HttpAgent } from "npm:@ag-ui/client@1.0.0";
import OpenAI from "npm:openai@7.57.0";
import * as z from "zod";
import type { Content, CorpusCase } from "../model/corpus/case.ts";
import { chatCompletionsCorpus } from "../model/corpus/chat_completions.ts";
import { geminiCorpus } from "../model/corpus/gemini.ts";
import { messagesCorpus } from "../model/corpus/messages.ts";
import { responsesCorpus } from "../model/corpus/responses.ts";
import { chunksOf, reaching } from "../support/chat.ts";
import { respond } from "../support/providers/sse.ts";
import { eventsOf, post } from "../support/requests.ts";

type Fetching = Parameters<typeof openai>[0]["fetch"];

/** The adapters with their cases. */
const adapters: readonly (readonly [readonly CorpusCase[], (fetch: Fetching) => Model])[] = [
  [chatCompletionsCorpus, (fetch) => openai({ model: "m", fetch: fetch! })],
  [responsesCorpus, (fetch) => openaiResponses({ model: "m", fetch: fetch! })],
  [messagesCorpus, (fetch) => anthropic({ model: "m", fetch: fetch! })],
  [geminiCorpus, (fetch) => gemini({ model: "m", fetch: fetch! })],
];

/** The answer to the results of the calls. */
const closing = "Then it ended.";

/** Serves an agent whose model reads the stream of a case first, and ends the run in the next turn. */
function served({ stream, expected: { calls } }: CorpusCase, adapter: (fetch: Fetching) => Model) {
  const provider = adapter(respond(stream));
  const model: Model = {
    id: "corpus",
    async *stream(request, options) {
      if (request.messages.at(-1)?.role === "user") yield* provider.stream(request, options);
      else yield [{ type: "text", text: closing }, { type: "finish", reason: "stop" }];
    },
  };
  const names = [...new Set(calls.map(([name]) => name))];
  const tools = names.map((name) =>
    tool({ name, description: "Works", input: z.looseObject({}), execute: () => "worked" })
  );
  return serve(agent({ model, tools }), { wires: [aiSdkUi(), agUi(), chatCompletions(), responses()] });
}

type Served = ReturnType<typeof served>;

/** The text, the calls, the reasoning, and the calls that the provider ran, of the first turn, as a client has read them. */
type Read = Pick<Content, "text" | "calls" | "reasoning" | "ran">;

/** Reads the first turn from the events. */
async function overEvents(app: Served): Promise<Read> {
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  const turn = events.slice(0, events.findIndex(({ type }) => type === "model.finished"));
  return {
    text: turn.map((event) => event.type === "text.delta" ? event.text : "").join(""),
    calls: turn.flatMap((event) => event.type === "call.ready" ? [[event.call.name, event.call.input] as const] : []),
    reasoning: turn.map((event) => event.type === "reasoning.delta" ? event.text : "").join(""),
    ran: turn.flatMap((event) =>
      event.type === "provider_tool.finished" ? [[event.content.name, event.content.output] as const] : []
    ),
  };
}

/** Reads the first step from the chunks of the AI SDK. */
async function overAiSdk(app: Served): Promise<Read> {
  const prompt = { id: "m1", role: "user", parts: [{ type: "text", text: "Hi" }] };
  const chunks = await chunksOf(post(app, "/chat", { id: "chat", messages: [prompt] }));
  const step = chunks.slice(0, chunks.findIndex(({ type }) => type === "finish-step"));
  const textOf = (wanted: string) => step.map(({ type, delta }) => type === wanted ? delta : "").join("");
  const names = new Map(step.map(({ toolCallId, toolName }) => [toolCallId, String(toolName)] as const).toReversed());
  return {
    text: textOf("text-delta"),
    calls: step.flatMap(({ type, toolName, input, providerExecuted }) =>
      type === "tool-input-available" && !providerExecuted ? [[String(toolName), input] as const] : []
    ),
    reasoning: textOf("reasoning-delta"),
    ran: step.flatMap(({ type, toolCallId, output, providerExecuted }) =>
      type === "tool-output-available" && providerExecuted ? [[names.get(toolCallId) ?? "", output] as const] : []
    ),
  };
}

/** Reads the first turn with the client of AG-UI. */
async function overAgUi(app: Served, own: ReadonlySet<string>): Promise<Read> {
  const client = new HttpAgent({ url: "/ag-ui", threadId: "thread", fetch: reaching(app) });
  client.addMessage({ id: "m1", role: "user", content: "Hi" });
  let reasoning = "";
  const { newMessages } = await client.runAgent({}, {
    onEvent({ event }) {
      if (event.type === "REASONING_MESSAGE_CONTENT") reasoning += (event as unknown as { delta: string }).delta; // of this type
    },
  });
  const answers = newMessages.flatMap((message) => message.role === "assistant" ? [message] : []);
  const made = answers.flatMap(({ toolCalls = [] }) => toolCalls);
  const names = new Map(made.map(({ id, function: { name } }) => [id, name]));
  const results = newMessages.flatMap((message) => message.role === "tool" ? [message] : []);
  return {
    text: answers.map(({ content }) => content ?? "").join("").replace(closing, ""),
    calls: made.flatMap(({ function: { name, arguments: input } }) =>
      own.has(name) ? [[name, JSON.parse(input)] as const] : []
    ),
    reasoning,
    ran: results.flatMap(({ toolCallId, content }) => {
      const name = names.get(toolCallId) ?? "";
      return own.has(name) ? [] : [[name, JSON.parse(String(content))] as const];
    }),
  };
}

function openaiOf(app: Served): OpenAI {
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}

/** Returns the text of the turns, which these APIs separate by an empty line. */
function textOfTurns({ expected: { text, calls } }: CorpusCase): string {
  return [text, ...calls.length > 0 ? [closing] : []].filter((text) => text !== "").join("\n\n");
}

for (const [cases, adapter] of adapters) {
  for (const each of cases) {
    const { name, source, expected: { text, calls, finish, reasoning = "", ran = [] } } = each;

    Deno.test(`corpus: every wire streams ${name} (${new URL(source).host})`, async () => {
      const content: Read = { text, calls, reasoning, ran };
      assertEquals(await overEvents(served(each, adapter)), content);
      assertEquals(await overAiSdk(served(each, adapter)), content);
      assertEquals(await overAgUi(served(each, adapter), new Set(calls.map(([name]) => name))), content);

      const prompt = { model: "m", messages: [{ role: "user" as const, content: "Hi" }] };
      const completing = openaiOf(served(each, adapter)).chat.completions.stream(prompt);
      const executed: { readonly id: string; readonly type: string; readonly output?: string }[] = [];
      completing.on("chunk", ({ choices: [choice] }) => {
        const { executed_tools = [] } = choice?.delta as unknown as { executed_tools?: typeof executed }; // an extension
        executed.push(...executed_tools);
      });
      const { choices: [choice] } = await completing.finalChatCompletion();
      const outputs = executed.flatMap(({ type, output }) => output === undefined ? [] : [[type, JSON.parse(output)]]);
      assertEquals<unknown>(outputs, ran);
      assertEquals(choice?.message.content ?? "", textOfTurns(each));
      const finishReason = { length: "length", filter: "content_filter", refusal: "content_filter" }[String(finish)] ??
        "stop";
      assertEquals(choice?.finish_reason, finishReason);

      const { output_text: outputText, output } = await openaiOf(served(each, adapter)).responses
        .stream({ model: "m", input: "Hi" }).finalResponse();
      assertEquals(outputText, textOfTurns(each).replace("\n\n", ""));
      const items = output.filter(({ type }) => /^(web_search|file_search|code_interpreter|mcp)_call$/.test(type));
      assertEquals(items.map((item) => "name" in item ? item.name : item.type.replace("interpreter", "execution")), [
        ...ran.map(([name]) => /^(web_search|file_search|code_execution)$/.test(name) ? `${name}_call` : name),
      ]);
      assertEquals(items.filter((item) => "status" in item && item.status !== "completed"), []);
    });
  }
}
