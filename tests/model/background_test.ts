import { agent, ModelError, type ModelEvent, user } from "@jizai/jizai";
import { openaiResponses, type OpenAIResponsesOptions } from "@jizai/jizai/model/openai_responses";
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { key } from "../support/providers/api.ts";
import { responsesApi, responseStream } from "../support/providers/openai_responses.ts";
import { respond } from "../support/providers/sse.ts";

/** A request that the adapter sent: its method, its path with the query, and its body. */
type Sent = readonly unknown[];
/** The pieces of a stream. An error among them loses the connection. */
type Pieces = readonly (string | Error)[];

const lost = new TypeError("error reading a body from connection");
const frames = responsesApi.stream.split(/(?<=\n\n)/);

/** Returns the number of the event in a frame. */
function numberIn(frame: string): number {
  return JSON.parse(frame.slice(frame.indexOf("data: ") + 6)).sequence_number;
}

/** Returns a model whose requests are answered by these responses in order, and the requests. */
function backgroundModel(
  answers: readonly (Pieces | Response | Error)[],
  options: Partial<OpenAIResponsesOptions> = {},
) {
  const sent: Sent[] = [];
  const model = openaiResponses({
    model: "gpt-6-astra",
    apiKey: key,
    background: true,
    ...options,
    fetch: (url, { method, body, headers, signal }) => {
      assertEquals(new Headers(headers).get("authorization"), `Bearer ${key}`);
      const { pathname, search } = new URL(url);
      const answer = pathname.endsWith("/cancel") ? Response.json({}) : answers[sent.length];
      sent.push([method, decodeURIComponent(pathname + search), ...(body ? [JSON.parse(String(body))] : [])]);
      if (answer instanceof Error) return Promise.reject(answer);
      if (answer instanceof Response) return answer;
      return answer?.at(-1) === "" ? openResponse(answer.join(""), signal) : respond(...answer ?? [])();
    },
  });
  return { model, sent };
}

/** Returns a response whose stream stays open until `signal` aborts. */
function openResponse(text: string, signal?: AbortSignal | null): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      signal?.addEventListener("abort", () => controller.error(signal.reason));
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

const whole = { instructions: "", messages: [user("Hi")], tools: [], options: {} };

async function eventsOf({ model }: ReturnType<typeof backgroundModel>, signal = new AbortController().signal) {
  const events: ModelEvent[] = [];
  for await (const read of model.stream({ model, ...whole }, { signal })) events.push(...read);
  return events;
}

const created = frames.slice(0, 1);
const included = "include[]=reasoning.encrypted_content";
const cancelled: Sent = ["POST", "/v1/responses/resp_1/cancel"];

Deno.test("openaiResponses() asks for a background response, which OpenAI does not store for long", async () => {
  const used = backgroundModel([frames]);
  await eventsOf(used);
  assertEquals(used.sent, [["POST", "/v1/responses", {
    model: "gpt-6-astra",
    input: [{ role: "user", content: "Hi" }],
    stream: true,
    store: false,
    include: ["reasoning.encrypted_content"],
    background: true,
  }]]);
});

Deno.test("openaiResponses() continues a background response after a lost connection, wherever it was lost", async () => {
  const expected = await eventsOf(backgroundModel([frames]));
  for (let at = 1; at < frames.length; at++) {
    const after = numberIn(frames[at - 1]!);
    const half = frames[at]!.slice(0, 30);
    for (const cut of [[...frames.slice(0, at), half, lost], frames.slice(0, at), [...frames.slice(0, at), half]]) {
      const used = backgroundModel([cut, frames.slice(at)]);
      assertEquals(joined(await eventsOf(used)), joined(expected));
      assertEquals(used.sent.slice(1), [[
        "GET",
        `/v1/responses/resp_1?stream=true&starting_after=${after}&${included}`,
      ]]);
    }
  }
});

/** Returns the events without the borders between deltas of one part. */
function joined(events: readonly ModelEvent[]): readonly unknown[] {
  return events.reduce<unknown[]>((before, event) => {
    const last = Object(before.at(-1));
    const isNext = event.type === "text" && last.type === "text";
    return isNext ? [...before.slice(0, -1), { ...event, text: last.text + event.text }] : [...before, event];
  }, []);
}

Deno.test("openaiResponses() connects to a background response again each time that its connection is lost", async () => {
  using time = new FakeTime();
  const busy = () =>
    Response.json({ error: { message: "Overloaded" } }, { status: 503, headers: { "retry-after": "3" } });
  const used = backgroundModel([
    [...frames.slice(0, 4), lost],
    new TypeError("connection refused"),
    busy(),
    [...frames.slice(4, 6), lost],
    frames.slice(6),
  ]);
  const work = eventsOf(used);
  for (let second = 0; second < 20; second++) await time.tickAsync(1_000);
  assertEquals((await work).at(-1)?.type, "finish");
  assertEquals(used.sent.map(([, path]) => /starting_after=(\d+)/.exec(String(path))?.[1]), [
    undefined,
    "3",
    "3",
    "3",
    "5",
  ]);
});

Deno.test("openaiResponses() gives a background response up after five failures in a row, and cancels it", async () => {
  using time = new FakeTime();
  const used = backgroundModel([[...created, lost], ...Array.from({ length: 9 }, () => new TypeError("refused"))]);
  const work = assertRejects(() => eventsOf(used), ModelError, "Cannot reach gpt-6-astra: the connection failed");
  for (let second = 0; second < 20; second++) await time.tickAsync(1_000);
  assertEquals((await work).recoverable, true);
  assertEquals(used.sent.map(([method]) => method), ["POST", "GET", "GET", "GET", "GET", "POST"]);
  assertEquals(used.sent.at(-1), cancelled);
});

Deno.test("openaiResponses() reports a background response that failed, or that the provider no longer has", async () => {
  const failed = responseStream([], { status: "failed", error: { code: "server_error", message: "Oops" } })
    .replaceAll("response.completed", "response.failed");
  const used = backgroundModel([[failed]]);
  await assertRejects(() => eventsOf(used), ModelError, "Oops");
  assertEquals(used.sent.length, 1);

  const gone = () => Response.json({ error: { message: "Response not found", code: "not_found" } }, { status: 404 });
  const late = backgroundModel([[...created, lost], gone()]);
  const error = await assertRejects(() => eventsOf(late), ModelError, "404 Response not found");
  assertEquals([error.recoverable, late.sent.length], [false, 3]);
});

Deno.test("openaiResponses() begins anew if it knows no id or no numbers of a background response", async () => {
  const unnumbered = created.map((frame) => frame.replace(/,"sequence_number":\d+/, ""));
  const starts: readonly (readonly [Pieces | Error, readonly Sent[]])[] = [
    [new TypeError("refused"), []],
    [[lost], []],
    [[...unnumbered, lost], [cancelled]],
  ];
  for (const [start, after] of starts) {
    const used = backgroundModel([start]);
    const error = await assertRejects(() => eventsOf(used), ModelError);
    assertEquals([error.recoverable, used.sent.slice(1)], [true, after]);
  }
});

Deno.test("a run that is stopped cancels its background response, also while it waits for a connection", async () => {
  using time = new FakeTime();
  for (const pieces of [[...created, ""], [...created, lost]]) {
    const stop = new AbortController();
    const used = backgroundModel([pieces, ...Array.from({ length: 4 }, () => new TypeError("refused"))]);
    const { result } = agent({ model: used.model }).run({ prompt: "Hi", signal: stop.signal });
    setTimeout(() => stop.abort(), 500);
    await time.tickAsync(600);
    assertEquals([(await result).status, used.sent.at(-1)], ["aborted", cancelled]);
  }
});

Deno.test("a reader that stops early cancels a background response", async () => {
  const used = backgroundModel([[...frames.slice(0, 8), ""]]);
  for await (const _ of used.model.stream({ model: used.model, ...whole }, { signal: new AbortController().signal })) {
    break;
  }
  assertEquals(used.sent.slice(1), [cancelled]);
});

Deno.test("a background response that cannot be cancelled changes nothing about the end of its run", async () => {
  using time = new FakeTime();
  const stop = new AbortController();
  const model = openaiResponses({
    model: "m",
    background: true,
    fetch: (url, { signal }) =>
      url.endsWith("/cancel") ? Promise.reject(new TypeError("refused")) : openResponse(created.join(""), signal),
  });
  const { result } = agent({ model }).run({ prompt: "Hi", signal: stop.signal });
  setTimeout(() => stop.abort(), 500);
  await time.tickAsync(600);
  assertEquals((await result).status, "aborted");
});

Deno.test("openaiResponses() keeps the query of its address, and asks for no encrypted reasoning of a stored response", async () => {
  const used = backgroundModel([[...created, lost], frames.slice(1)], {
    baseURL: "https://res.openai.azure.com/openai/v1?api-version=preview",
    options: { store: true },
  });
  await eventsOf(used);
  assertEquals(used.sent.map(([method, path]) => [method, path]), [
    ["POST", "/openai/v1/responses?api-version=preview"],
    ["GET", "/openai/v1/responses/resp_1?api-version=preview&stream=true&starting_after=0"],
  ]);
});
