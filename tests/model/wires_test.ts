import { agent, ModelError, tool } from "@jizai/jizai";
import { retry } from "@jizai/jizai/middleware/retry";
import { collect, outline } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { chunk, socket, streaming } from "../support/socket.ts";
import { lines } from "../support/told.ts";
import { answering, key, reads, recording, thrown, upTo, type Wire, wires } from "../support/wires.ts";

/** What the error of a refused request says. */
async function refusalOf({ model }: Wire, response: Response) {
  const error = await thrown(reads(model({ fetch: () => response })));
  if (!(error instanceof ModelError)) throw error;
  const { message, recoverable, retryAfter, status, overflow } = error;
  return { message, recoverable, retryAfter, status, overflow };
}

/** The error of an answer that does not go on. */
const lost = (id: string) => `ModelError: Cannot hear ${id} out: its answer was cut, or cannot be read`;

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});

for (const wire of wires) {
  const { name, model, path, stream, events, saying, calling, overloaded } = wire;
  const bytes = new TextEncoder().encode(stream);
  const { id } = model();

  Deno.test(`${name} hears the same wherever the bytes are cut in two`, async () => {
    for (let at = 0; at <= bytes.length; at++) {
      const said = await reads(model({ fetch: answering(bytes.slice(0, at), bytes.slice(at)) }));
      assertEquals(said.flat(), events);
    }
  });

  Deno.test(`${name} hears the same byte by byte, and with other line ends`, async () => {
    const crlf = new TextEncoder().encode(stream.replaceAll("\n", "\r\n"));
    for (const text of [bytes, crlf]) {
      const single = Array.from(text, (byte) => new Uint8Array([byte]));
      assertEquals((await reads(model({ fetch: answering(...single) }))).flat(), events);
    }
  });

  Deno.test(`${name} gives one array for every read`, async () => {
    assertEquals(await reads(model({ fetch: answering(stream) })), [events]);
    const frames = stream.split(/(?<=\n\n)/);
    const said = await reads(model({ fetch: answering(...frames) }));
    assertEquals(said.flat(), events);
    assertEquals(said.filter((read) => read.length === 0), []);
  });

  Deno.test(`${name} never takes a stream that ends too early for a whole answer`, async () => {
    const [finish] = events.slice(-1);
    const enough = stream.search(/"(finish|stop)_reason":"/);
    for (let at = 0; at < enough; at += 7) {
      const said = await reads(model({ fetch: answering(bytes.slice(0, at)) })).catch((error) => String(error));
      if (typeof said === "string") assertEquals(said, lost(id));
      else assertEquals(said.flat().includes(finish!), false);
    }
    const { status, error } = await agent({ model: model({ fetch: answering("") }) }).run("Hi").result;
    assertEquals([status, String(error)], [
      "failed",
      `ModelError: Cannot complete turn 1: the stream of ${id} was cut`,
    ]);
  });

  Deno.test(`${name} says what came before a failure, and that it may pass`, async () => {
    const cause = new TypeError("connection reset");
    const half = upTo("自在", stream);
    const said: unknown[] = [];
    const answered = model({ fetch: answering(half, cause) });
    const request = { model: answered, instructions: "", messages: [], tools: [], options: {} };
    const error = await thrown((async () => {
      for await (const read of answered.stream(request, { signal: new AbortController().signal })) said.push(...read);
    })());
    const texts = events.findIndex(({ type }) => type === "text");
    assertEquals(said, events.slice(0, texts + 1));
    assertEquals([String(error), error instanceof ModelError && error.recoverable], [lost(id), true]);
    assertEquals((error as ModelError).cause, cause);
  });

  Deno.test(`${name} tells a cut connection from an answer`, async () => {
    const begun = chunk(stream.slice(0, 700));
    const unheard = `ModelError: Cannot reach ${id}`;
    const faults: [told: string, ...pieces: readonly string[]][] = [
      [unheard],
      [unheard, "HTTP/1.1 200 OK\r\n"],
      [lost(id), streaming],
      [lost(id), streaming, begun],
      [lost(id), streaming, begun, "ff\r\ndata: {"],
    ];
    for (const [told, ...pieces] of faults) {
      await using server = socket(...pieces);
      const error = await thrown(reads(model({ baseURL: server.url })));
      assertEquals([String(error), error instanceof ModelError && error.recoverable], [told, true]);
    }
    await using server = socket(streaming, chunk(stream), "0\r\n\r\n");
    assertEquals((await reads(model({ baseURL: server.url }))).flat(), events);
  });

  Deno.test(`${name} says when a server cannot be reached`, async () => {
    const server = socket();
    await server[Symbol.asyncDispose]();
    assertEquals(String(await thrown(reads(model({ baseURL: server.url })))), `ModelError: Cannot reach ${id}`);
  });

  Deno.test(`${name} fails on a frame that is not JSON, after what came before it`, async () => {
    const error = await thrown(
      reads(model({ fetch: answering(`data: 1\n\ndata: null\n\ndata: []\n\ndata: {"a\n\n`) })),
    );
    assertEquals([String(error), (error as ModelError).cause instanceof SyntaxError], [lost(id), true]);
  });

  Deno.test(`${name} is told in the stream that the provider is overloaded`, async () => {
    const fetch = answering(upTo("It is ", saying("It is ", "sunny.")) + overloaded);
    const { events, result } = await collect(agent({ model: model({ fetch }) }).run("Hi"));
    assertEquals(outline(events).slice(4), [
      `model.started ${id}`,
      "text.delta It is ",
      "session.closed",
      "run.failed",
    ]);
    assertEquals(result.error instanceof ModelError && result.error.recoverable, true);
    assertEquals(String(result.error), `ModelError: Cannot ask ${id}: Overloaded`);
  });

  Deno.test(`${name} starts over, for all to see, when it is tried again after some text`, async () => {
    const answers = [answering(upTo("It is ", saying("It is ")), new Error("reset")), answering(saying("Sunny."))];
    const asked = model({ fetch: () => answers.shift()!() });
    const { events } = await collect(agent({ model: asked, use: [retry({ delay: 0, afterText: true })] }).run("Hi"));
    assertEquals(outline(events).slice(4, -3), [
      `model.started ${id}`,
      "text.delta It is ",
      "model.reset",
      "text.delta Sunny.",
      "model.finished stop",
    ]);
  });

  Deno.test(`${name} tells the model of arguments that were no JSON, and sends none`, async () => {
    const { sent, fetch } = recording(calling('{"city":"京都"'), saying("Sorry."));
    const { messages } = await agent({ model: model({ fetch }), tools: [weather] }).run("Hi").result;
    assertEquals(lines(messages).map((line) => line.replace(/: .*/, "")), [
      "user Hi",
      "call weather",
      "error The input of weather is not valid JSON",
      "assistant Sorry.",
    ]);
    const [call] = sent[1]?.body.messages[1].tool_calls ?? sent[1]?.body.messages[1].content;
    assertEquals(call.input ?? JSON.parse(call.function.arguments), { input: '{"city":"京都"' });
  });

  Deno.test(`${name} says whether and when a refused request may be sent again`, async () => {
    using _ = new FakeTime("2026-01-02T03:04:05Z");
    const cases: [
      status: number,
      headers: Record<string, string>,
      expected: { recoverable: boolean; retryAfter?: number },
    ][] = [
      [400, {}, { recoverable: false }],
      [401, {}, { recoverable: false }],
      [408, {}, { recoverable: true }],
      [409, {}, { recoverable: true }],
      [429, { "retry-after": "2" }, { recoverable: true, retryAfter: 2_000 }],
      [429, { "retry-after": "Fri, 02 Jan 2026 03:04:15 GMT" }, { recoverable: true, retryAfter: 10_000 }],
      [429, { "retry-after": "Fri, 02 Jan 2026 03:00:00 GMT" }, { recoverable: true, retryAfter: 0 }],
      [429, { "retry-after": "soon" }, { recoverable: true }],
      [429, { "retry-after": "2", "retry-after-ms": "1500" }, { recoverable: true, retryAfter: 1_500 }],
      [429, { "x-should-retry": "false" }, { recoverable: false }],
      [400, { "x-should-retry": "true" }, { recoverable: true }],
      [500, {}, { recoverable: true }],
      [503, { "retry-after": "1" }, { recoverable: true, retryAfter: 1_000 }],
      [529, {}, { recoverable: true }],
    ];
    for (const [status, headers, expected] of cases) {
      const body = JSON.stringify({ error: { message: "No.", type: "some_error" } });
      assertEquals(await refusalOf(wire, new Response(body, { status, headers })), {
        message: `Cannot ask ${id}: ${status} No.`,
        status,
        overflow: false,
        retryAfter: undefined,
        ...expected,
      });
    }
  });

  Deno.test(`${name} understands however a refusal is put`, async () => {
    const bodies: [body: unknown, told: string][] = [
      [{ error: { message: "No.", type: "t" } }, "400 No."],
      [{ type: "error", error: { type: "invalid_request_error", message: "No." } }, "400 No."],
      [{ error: "No." }, "400 No."],
      [[{ error: { code: 400, message: "No.", status: "INVALID_ARGUMENT" } }], "400 No."],
      [{ message: "No." }, "400 No."],
      [{ detail: "No." }, "400 No."],
      [{ error: { type: "some_error" } }, "400 some_error"],
      ["<h1>No.</h1>", "400 <h1>No.</h1>"],
      [{}, "400"],
      [null, "400"],
      ["", "400"],
    ];
    for (const [body, told] of bodies) {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const { message } = await refusalOf(wire, new Response(text, { status: 400 }));
      assertEquals(message, `Cannot ask ${id}: ${told}`);
    }
  });

  Deno.test(`${name} knows a request that was too long`, async () => {
    const said = [
      [400, { message: "This model's maximum context length is 128000 tokens.", code: "context_length_exceeded" }],
      [400, { message: "prompt is too long: 210000 tokens > 200000 maximum" }],
      [400, { message: "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000" }],
      [400, { message: "the request exceeds the available context size", type: "exceed_context_size_error" }],
      [400, { message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)." }],
      [413, { message: "Request exceeds the maximum size", type: "request_too_large" }],
      [500, { message: "Your input exceeds the context window of this model" }],
    ] as const;
    for (const [status, error] of said) {
      const { overflow, recoverable } = await refusalOf(wire, new Response(JSON.stringify({ error }), { status }));
      assertEquals([error.message, overflow, recoverable], [error.message, true, false]);
    }
    const others = [
      [429, { message: "Limit 30000 tokens per minute: your context window", code: "rate_limit_exceeded" }],
      [400, { message: "max_tokens is too large: 100000. This model supports at most 16384 tokens" }],
    ] as const;
    for (const [status, error] of others) {
      assertEquals((await refusalOf(wire, new Response(JSON.stringify({ error }), { status }))).overflow, false);
    }
  });

  Deno.test(`${name} does not try again what is not paid for`, async () => {
    const body = JSON.stringify({ error: { message: "You exceeded your quota.", code: "insufficient_quota" } });
    assertEquals((await refusalOf(wire, new Response(body, { status: 429 }))).recoverable, false);
  });

  Deno.test(`${name} reads no more of a refusal than it needs, and tells less`, async () => {
    let read = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        read += 1_024;
        controller.enqueue(new Uint8Array(1_024).fill(97));
      },
    }, { highWaterMark: 0 });
    const { message } = await refusalOf(wire, new Response(endless, { status: 500 }));
    assertEquals([read, message], [8_192, `Cannot ask ${id}: 500 ${"a".repeat(1_000)}…`]);
  });

  Deno.test(`${name} tells a refusal that was cut as far as it came`, async () => {
    const { body } = answering("Bad gate", new Error("reset"))();
    assertEquals(
      (await refusalOf(wire, new Response(body, { status: 502 }))).message,
      `Cannot ask ${id}: 502 Bad gate`,
    );
  });

  Deno.test(`${name} says so where there is a page instead of a stream, or another address`, async () => {
    const page = new Response("Ollama is running", { headers: { "content-type": "text/html; charset=utf-8" } });
    assertEquals((await refusalOf(wire, page)).message, `Cannot ask ${id}: 200 Ollama is running`);
    await using other = socket();
    const moved = `HTTP/1.1 307 Temporary Redirect\r\nlocation: ${other.url}\r\ncontent-length: 0\r\n\r\n`;
    await using server = socket(moved);
    const error = await thrown(reads(model({ baseURL: server.url })));
    assertEquals(String(error), `ModelError: Cannot ask ${id}: 307`);
  });

  Deno.test(`${name} shows its key to nobody but the provider`, async () => {
    const token = "token-0123456789";
    const repeated = `Wrong key ${key}, and ${token}`;
    const secretive = { headers: { authorization: `Bearer ${token}` } };
    const refused = model({ ...secretive, fetch: () => new Response(repeated, { status: 401 }) });
    assertEquals(String(await thrown(reads(refused))), `ModelError: Cannot ask ${id}: 401 Wrong key ***, and ***`);
    const broken = model({ ...secretive, fetch: answering(`data: ${JSON.stringify({ error: repeated })}\n\n`) });
    assertEquals(String(await thrown(reads(broken))), `ModelError: Cannot ask ${id}: Wrong key ***, and ***`);
    const why = `Cannot reach ${id}: its key or one of its headers has a character that no header may have`;
    for (const apiKey of [`${key}\n${key}`, `${key}…`]) {
      assertEquals(assertThrows(() => model({ apiKey }), TypeError).message, why);
    }
  });

  Deno.test(`${name} stops when it is told to, and lets go of the connection`, async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    let left = false;
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => controller.signal.addEventListener("abort", () => stream.error(reason)),
      pull: () => new Promise(() => {}),
    });
    const silent = reads(model({ fetch: () => new Response(body) }), {}, controller.signal);
    controller.abort(reason);
    assertEquals(await thrown(silent), reason);

    const endless = new ReadableStream<Uint8Array>({
      pull: (stream) => stream.enqueue(bytes.slice(0, 900)),
      cancel: () => void (left = true),
    });
    const answered = model({ fetch: () => new Response(endless) });
    const request = { model: answered, instructions: "", messages: [], tools: [], options: {} };
    for await (const _ of answered.stream(request, { signal: new AbortController().signal })) break;
    assertEquals(left, true);
  });

  Deno.test(`${name} is asked where it is told to, with what it is told to send`, async () => {
    const { sent, fetch } = recording(stream);
    const baseURL = "https://example.com/api/?version=1";
    const asked = model({
      fetch,
      baseURL,
      headers: { "X-Custom": "a", "Content-Type": "application/json; charset=utf-8" },
      temperature: 0.5,
      options: { seed: 1, top_p: 0.5, stream: null },
    });
    await reads(asked, { options: { temperature: 0, provider: { seed: 2 } } });
    const [{ url, headers, body } = { url: "", headers: {}, body: {} }] = sent;
    assertEquals(url, `https://example.com/api${path}?version=1`);
    assertEquals([headers["x-custom"], headers["content-type"]], ["a", "application/json; charset=utf-8"]);
    assertEquals([body.temperature, body.seed, body.top_p, "stream" in body], [0, 2, 0.5, false]);
    assertThrows(() => model({ baseURL: "localhost" }), TypeError, `Cannot reach ${id}: its baseURL is not a URL`);
  });
}
