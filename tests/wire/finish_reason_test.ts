/**
 * The finish reason of the last response, as each client reads it.
 */
import { agent, type FinishReason, type RunResult, serve } from "@jizai/jizai";
import { client } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkObject, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import { eventsOf, post } from "../support/requests.ts";

type Answer = readonly [text: string, finish: FinishReason];

/** Serves an agent that gives one answer, to the clients of every wire. */
function served([text, finish]: Answer) {
  const model = scripted({ text, finish });
  return serve(agent({ model }), { wires: [aiSdkUi(), aiSdkObject(), agUi(), chatCompletions(), responses()] });
}

/** Returns the JSON of the last frame that is an object. */
async function lastFrame(response: Response | Promise<Response>): Promise<Readonly<Record<string, unknown>>> {
  const frames = (await (await response).text()).split("\n").filter((line) => line.startsWith("data: {"));
  return JSON.parse(frames.at(-1)?.slice("data: ".length) ?? "{}");
}

const answers: readonly Answer[] = [
  ["Hello", "length"],
  ["Hello", "filter"],
  ["Hello", "refusal"],
  ["Hello", "other"],
  ["", "stop"],
  ["Hello", "stop"],
];

/** The finish reasons that the engine gives the answers. */
const finishes: readonly FinishReason[] = ["length", "filter", "refusal", "other", "empty", "stop"];

/** Returns what `read` finds in the response to each answer. */
function each<T>(read: (app: ReturnType<typeof served>) => Promise<T>): Promise<readonly T[]> {
  return Promise.all(answers.map((answer) => read(served(answer))));
}

Deno.test("the result of a run and run.finished have the finish reason of the last response", async () => {
  const results = await Promise.all(
    answers.map(([text, finish]): Promise<RunResult> => agent({ model: scripted({ text, finish }) }).run("Hi").result),
  );
  assertEquals<unknown>(
    results.map(({ status, finish }) => [status, finish]),
    finishes.map((finish) => ["done", finish]),
  );
  const ends = await each(async (app) => (await eventsOf(post(app, "/runs", { prompt: "Hi" }))).at(-1));
  assertEquals<unknown>(ends.map((end) => end?.type === "run.finished" && end.finish), finishes);
});

Deno.test("the state of client() has the finish reason", async () => {
  const states = await each(async (app) => {
    const run = client("", { fetch: app.request }).run({ prompt: "Hi" });
    await run.result();
    return run.state.finish;
  });
  assertEquals(states, finishes);
});

Deno.test("useChat has the finish reason", async () => {
  const message = { id: "m", role: "user", parts: [{ type: "text", text: "Hi" }] };
  const chunks = await each((app) => lastFrame(post(app, "/chat", { id: "chat", messages: [message] })));
  assertEquals(chunks.map(({ finishReason }) => finishReason), [
    "length",
    "content-filter",
    "content-filter",
    "other",
    "other",
    "stop",
  ]);
});

Deno.test("useObject has an error for an answer that is not whole", async () => {
  const outcomes = await each(async (app) => {
    const response = await post(app, "/object", "Hi");
    return [response.status, await response.text().catch((error) => error.message)];
  });
  const message = (finish: string) => `The answer is not complete: ${finish}`;
  assertEquals(outcomes, [
    ...["length", "filter", "refusal"].map((
      finish,
    ) => [500, JSON.stringify({ error: { code: finish, message: message(finish) } })]),
    [200, "Hello"],
    [500, JSON.stringify({ error: { code: "empty", message: message("empty") } })],
    [200, "Hello"],
  ]);
});

Deno.test("AG-UI clients have the finish reason in the metadata of RUN_FINISHED", async () => {
  const request = { threadId: "t", runId: "r", messages: [{ id: "m", role: "user", content: "Hi" }] };
  const more = { state: {}, tools: [], context: [], forwardedProps: {} };
  const ends = await each((app) => lastFrame(post(app, "/ag-ui", { ...request, ...more })));
  assertEquals(
    ends.map(({ type, metadata }) => [type, metadata]),
    finishes.map((finish) => [
      "RUN_FINISHED",
      { status: "done", finish },
    ]),
  );
});

Deno.test("clients of chat completions have the finish reason, streamed and whole", async () => {
  const body = { model: "any", messages: [{ role: "user", content: "Hi" }] };
  const reasonsOf = ({ choices: [choice = {}] = [] }: { choices?: Readonly<Record<string, unknown>>[] }) => [
    choice.finish_reason,
    choice.native_finish_reason,
  ];
  const expected = [
    ["length", undefined],
    ["content_filter", undefined],
    ["content_filter", "refusal"],
    ["stop", "other"],
    ["stop", "empty"],
    ["stop", undefined],
  ];
  assertEquals(
    await each(async (app) => reasonsOf(await (await post(app, "/v1/chat/completions", body)).json())),
    expected,
  );
  const streamed = { ...body, stream: true };
  assertEquals(
    await each(async (app) => reasonsOf(await lastFrame(post(app, "/v1/chat/completions", streamed)))),
    expected,
  );
});

Deno.test("clients of Responses have the finish reason, streamed and whole", async () => {
  const reasonOf = (response: Readonly<Record<string, unknown>>) => {
    const { status, incomplete_details: details, native_finish_reason: native } = response;
    return [status, details, native];
  };
  const expected = [
    ["incomplete", { reason: "max_output_tokens" }, undefined],
    ["incomplete", { reason: "content_filter" }, undefined],
    ["incomplete", { reason: "content_filter" }, "refusal"],
    ["completed", undefined, "other"],
    ["completed", undefined, "empty"],
    ["completed", undefined, undefined],
  ];
  assertEquals(
    await each(async (app) => reasonOf(await (await post(app, "/v1/responses", { input: "Hi" })).json())),
    expected,
  );
  const ends = await each((app) => lastFrame(post(app, "/v1/responses", { input: "Hi", stream: true })));
  assertEquals(ends.map(({ response }) => reasonOf(Object(response))), expected);
});
