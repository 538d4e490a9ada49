import { agent, ModelError, type ModelErrorCode, tool } from "@jizai/jizai";
import { retry } from "@jizai/jizai/middleware/retry";
import { collect, outline } from "@jizai/jizai/testing";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { chunk, socket, streaming } from "../support/socket.ts";
import { lines } from "../support/transcript_lines.ts";
import { key, type ProviderApi } from "../support/providers/api.ts";
import { apis } from "../support/providers/mod.ts";
import { errorOf, readAll, recordRequests, respond, streamUpTo } from "../support/providers/sse.ts";

/** Returns the fields of the error for a response. */
async function failureOf({ model }: ProviderApi, response: Response) {
  const error = await errorOf(readAll(model({ fetch: () => response })));
  if (!(error instanceof ModelError)) throw error;
  const { message, recoverable, retryAfter, status, overflow, code } = error;
  return { message, recoverable, retryAfter, status, overflow, code };
}

/** The error of a response that breaks off. */
const cutError = (id: string) => `ModelError: Cannot read the response of ${id}: the stream was cut or is invalid`;

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});

Deno.test("an adapter names its provider and its server, for telemetry", () => {
  assertEquals(
    apis.map(({ name, model }) => [name, model().server, model({ baseURL: "http://localhost:8080/v1" }).server]),
    ([
      ["openai()", "openai", "api.openai.com"],
      ["anthropic()", "anthropic", "api.anthropic.com"],
      ["openaiResponses()", "openai", "api.openai.com"],
      ["gemini()", "gcp.gemini", "generativelanguage.googleapis.com"],
    ] as const).map(([name, provider, address]) => [
      name,
      { provider, address, port: 443 },
      { provider, address: "localhost", port: 8080 },
    ]),
  );
  const [chat] = apis;
  assertEquals(chat?.model({ baseURL: "http://10.0.0.7" }).server, {
    provider: "openai",
    address: "10.0.0.7",
    port: 80,
  });
});

for (const api of apis) {
  const { name, model, path, query = "", stream, events, textStream, callStream, finished } = api;
  const { overloadedFrame, overloadedMessage = "Overloaded", temperatureIn, inputIn } = api;
  const bytes = new TextEncoder().encode(stream);
  const { id } = model();

  Deno.test(`${name} rejects a request without a key to the vendor's address, and sends nothing`, async () => {
    const error = await errorOf(readAll(model({ apiKey: "" })));
    assert(error instanceof ModelError);
    const message = `Cannot reach ${id}: its \`apiKey\` is empty; expected the key of your account`;
    assertEquals([error.message, error.code], [message, "unauthorized"]);
  });

  Deno.test(`${name} emits the same events wherever the bytes are split`, async () => {
    let pieces: readonly Uint8Array[] = [];
    const reader = model({ fetch: () => respond(...pieces)() });
    for (let at = 0; at <= bytes.length; at++) {
      pieces = [bytes.subarray(0, at), bytes.subarray(at)];
      assertEquals((await readAll(reader)).flat(), events);
    }
  });

  Deno.test(`${name} emits the same events byte by byte and with CRLF`, async () => {
    const crlf = new TextEncoder().encode(stream.replaceAll("\n", "\r\n"));
    for (const text of [bytes, crlf]) {
      const single = Array.from(text, (byte) => new Uint8Array([byte]));
      assertEquals((await readAll(model({ fetch: respond(...single) }))).flat(), events);
    }
  });

  Deno.test(`${name} reads a stream that is typed as JSON, with carriage returns and empty data`, async () => {
    const odd = `data:\r\rdata: \r\r${stream.replaceAll("\n", "\r").replace("[DONE]", "[DONE] ")}`;
    for (const type of ["application/json", "application/json; charset=utf-8"]) {
      for (const size of [1, 7, odd.length * 4]) {
        const encoded = new TextEncoder().encode(odd);
        const pieces = Array.from(
          { length: Math.ceil(encoded.length / size) },
          (_, at) => encoded.slice(at * size, (at + 1) * size),
        );
        const fetch = () => new Response(respond(...pieces)().body, { headers: { "content-type": type } });
        assertEquals((await readAll(model({ fetch }))).flat(), events);
      }
    }
  });

  Deno.test(`${name} throws for an event that is named error, and for a frame that contains nothing but a message`, async () => {
    const failures: [stream: string, message: string, recoverable: boolean][] = [
      ["event: error\ndata: Overloaded\n\n", "Overloaded", true],
      ['event: error\ndata: {"message":"No.","code":400}\n\n', "400 No.", false],
      ['event: error\ndata: {"error":{"message":"No.","code":"503"}}\n\n', "503 No.", true],
      ["event: error\n\n", "no reason given", true],
      ['data: {"message":"Overloaded"}\n\n', "Overloaded", true],
      ['data: {"detail":"Overloaded"}\n\n', "Overloaded", true],
      ['data: {"detail":[{"msg":"No."}],"type":"value_error"}\n\n', '[{"msg":"No."}]', true],
      ['data: {"code":401,"msg":"No.","success":false}\n\n', "401 No.", false],
      ['data: {"error":"No.","error_type":"validation"}\n\n', "No.", false],
    ];
    for (const [stream, message, recoverable] of failures) {
      const error = await errorOf(readAll(model({ fetch: respond(stream) })));
      assertEquals([String(error), error instanceof ModelError && error.recoverable], [
        `ModelError: Cannot ask ${id}: ${message}`,
        recoverable,
      ]);
    }
    const ignored = 'data: {"type":"info","message":"queued"}\n\ndata: {"type":"ping"}\n\n';
    assertEquals((await readAll(model({ fetch: respond(ignored + stream) }))).flat(), events);
  });

  Deno.test(`${name} yields one array per read`, async () => {
    const whole = api.endsWithoutFrame ? [events.slice(0, -1), events.slice(-1)] : [events];
    assertEquals(await readAll(model({ fetch: respond(stream) })), whole);
    const frames = stream.split(/(?<=\n\n)/);
    const received = await readAll(model({ fetch: respond(...frames) }));
    assertEquals(received.flat(), events);
    assertEquals(received.filter((read) => read.length === 0), []);
  });

  Deno.test(`${name} never reports a cut stream as finished`, async () => {
    const [finish] = events.slice(-1);
    const enough = stream.search(finished);
    for (let at = stream.indexOf("data: ") + 6; at < enough; at += 7) {
      const received = await readAll(model({ fetch: respond(bytes.slice(0, at)) })).catch((error) => String(error));
      if (typeof received === "string") assertEquals(received, cutError(id));
      else assertEquals(received.flat().includes(finish!), false);
    }
    const { status, error } = await agent({ model: model({ fetch: respond("") }) }).run("Hi").result;
    assertEquals([status, String(error)], [
      "failed",
      `ModelError: Cannot read the response of ${id}: expected an event stream, got text/event-stream without events`,
    ]);
  });

  Deno.test(`${name} delivers the events before a failure, which is recoverable`, async () => {
    const cause = new TypeError("connection reset");
    const half = streamUpTo("自在", stream);
    const received: unknown[] = [];
    const answered = model({ fetch: respond(half, cause) });
    const request = { model: answered, instructions: "", messages: [], tools: [], options: {} };
    const error = await errorOf((async () => {
      for await (const read of answered.stream(request, { signal: new AbortController().signal })) {
        received.push(...read);
      }
    })());
    const texts = events.findIndex(({ type }) => type === "text");
    assertEquals(received, events.slice(0, texts + 1));
    assertEquals([String(error), error instanceof ModelError && error.recoverable], [cutError(id), true]);
    assertEquals((error as ModelError).cause, cause);
  });

  Deno.test(`${name} throws a recoverable error for a cut connection`, async () => {
    const begun = chunk(stream.slice(0, 700));
    const unreachable = `ModelError: Cannot reach ${id}: the connection failed`;
    const faults: [message: string, ...pieces: readonly string[]][] = [
      [unreachable],
      [unreachable, "HTTP/1.1 200 OK\r\n"],
      [cutError(id), streaming],
      [cutError(id), streaming, begun],
      [cutError(id), streaming, begun, "ff\r\ndata: {"],
    ];
    for (const [message, ...pieces] of faults) {
      await using server = socket(...pieces);
      const error = await errorOf(readAll(model({ baseURL: server.url })));
      assertEquals([String(error), error instanceof ModelError && error.recoverable], [message, true]);
    }
    await using server = socket(streaming, chunk(stream), "0\r\n\r\n");
    assertEquals((await readAll(model({ baseURL: server.url }))).flat(), events);
  });

  Deno.test(`${name} throws if the server cannot be reached`, async () => {
    const server = socket();
    await server[Symbol.asyncDispose]();
    assertEquals(
      String(await errorOf(readAll(model({ baseURL: server.url })))),
      `ModelError: Cannot reach ${id}: the connection failed`,
    );
  });

  Deno.test(`${name} throws for a frame that is not valid JSON`, async () => {
    const error = await errorOf(
      readAll(model({ fetch: respond(`data: 1\n\ndata: null\n\ndata: []\n\ndata: {"a\n\n`) })),
    );
    assertEquals([String(error), (error as ModelError).cause instanceof SyntaxError], [cutError(id), true]);
  });

  Deno.test(`${name} throws a recoverable error for an overload within the stream`, async () => {
    const fetch = respond(streamUpTo("It is ", textStream("It is ", "sunny.")) + overloadedFrame);
    const { events, result } = await collect(agent({ model: model({ fetch }) }).run("Hi"));
    assertEquals(outline(events).slice(4), [
      `model.started ${id}`,
      "text.delta It is ",
      "session.closed",
      "run.failed",
    ]);
    assertEquals(result.error instanceof ModelError && result.error.recoverable, true);
    assertEquals(String(result.error), `ModelError: Cannot ask ${id}: ${overloadedMessage}`);
  });

  Deno.test(`${name} emits model.reset when a retry follows visible text`, async () => {
    const answers = [
      respond(streamUpTo("It is ", textStream("It is ")), new Error("reset")),
      respond(textStream("Sunny.")),
    ];
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

  if (callStream) {
    Deno.test(`${name} reports malformed arguments to the model and sends them back as an object`, async () => {
      const { sent, fetch } = recordRequests(callStream('{"city":"京都"'), textStream("Sorry."));
      const { messages } = await agent({ model: model({ fetch }), tools: [weather] }).run("Hi").result;
      assertEquals(lines(messages).map((line) => line.replace(/: .*/, "")), [
        "user Hi",
        "call weather",
        "error The input of weather is not valid JSON",
        "assistant Sorry.",
      ]);
      assertEquals(inputIn(sent[1]?.body), { input: '{"city":"京都"' });
    });
  }

  Deno.test(`${name} sets recoverable and retryAfter from the response`, async () => {
    using _ = new FakeTime("2026-01-02T03:04:05Z");
    const cases: [
      status: number,
      headers: Record<string, string>,
      expected: { recoverable: boolean; retryAfter?: number; code: ModelErrorCode },
    ][] = [
      [400, {}, { recoverable: false, code: "internal" }],
      [401, {}, { recoverable: false, code: "unauthorized" }],
      [403, {}, { recoverable: false, code: "unauthorized" }],
      [404, {}, { recoverable: false, code: "internal" }],
      [408, {}, { recoverable: true, code: "unavailable" }],
      [409, {}, { recoverable: true, code: "unavailable" }],
      [429, { "retry-after": "2" }, { recoverable: true, retryAfter: 2_000, code: "rate_limited" }],
      [429, { "retry-after": "Fri, 02 Jan 2026 03:04:15 GMT" }, {
        recoverable: true,
        retryAfter: 10_000,
        code: "rate_limited",
      }],
      [429, { "retry-after": "Fri, 02 Jan 2026 03:00:00 GMT" }, {
        recoverable: true,
        retryAfter: 0,
        code: "rate_limited",
      }],
      [429, { "retry-after": "soon" }, { recoverable: true, code: "rate_limited" }],
      [429, { "retry-after": "2", "retry-after-ms": "1500" }, {
        recoverable: true,
        retryAfter: 1_500,
        code: "rate_limited",
      }],
      [429, { "x-should-retry": "false" }, { recoverable: false, code: "rate_limited" }],
      [400, { "x-should-retry": "true" }, { recoverable: true, code: "unavailable" }],
      [500, {}, { recoverable: true, code: "unavailable" }],
      [503, { "retry-after": "1" }, { recoverable: true, retryAfter: 1_000, code: "overloaded" }],
      [529, {}, { recoverable: true, code: "overloaded" }],
    ];
    for (const [status, headers, expected] of cases) {
      const body = JSON.stringify({ error: { message: "No.", type: "some_error" } });
      assertEquals(await failureOf(api, new Response(body, { status, headers })), {
        message: `Cannot ask ${id}: ${status} No.`,
        status,
        overflow: false,
        retryAfter: undefined,
        ...expected,
      });
    }
  });

  Deno.test(`${name} reads an error body in every known form`, async () => {
    const bodies: [body: unknown, reason: string][] = [
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
    for (const [body, reason] of bodies) {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const { message } = await failureOf(api, new Response(text, { status: 400 }));
      assertEquals(message, `Cannot ask ${id}: ${reason}`);
    }
  });

  Deno.test(`${name} sets overflow for a request larger than the context`, async () => {
    const failures = [
      [400, { message: "This model's maximum context length is 128000 tokens.", code: "context_length_exceeded" }],
      [400, { message: "prompt is too long: 210000 tokens > 200000 maximum" }],
      [400, { message: "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000" }],
      [400, { message: "the request exceeds the available context size", type: "exceed_context_size_error" }],
      [400, { message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)." }],
      [413, { message: "Request exceeds the maximum size", type: "request_too_large" }],
      [500, { message: "Your input exceeds the context window of this model" }],
    ] as const;
    for (const [status, error] of failures) {
      const { overflow, recoverable, code } = await failureOf(api, new Response(JSON.stringify({ error }), { status }));
      assertEquals([error.message, overflow, recoverable, code], [error.message, true, false, "context"]);
    }
    const others = [
      [429, { message: "Limit 30000 tokens per minute: your context window", code: "rate_limit_exceeded" }],
      [400, { message: "max_tokens is too large: 100000. This model supports at most 16384 tokens" }],
    ] as const;
    for (const [status, error] of others) {
      assertEquals((await failureOf(api, new Response(JSON.stringify({ error }), { status }))).overflow, false);
    }
  });

  Deno.test(`${name} does not retry after the quota is used up`, async () => {
    const body = JSON.stringify({ error: { message: "You exceeded your quota.", code: "insufficient_quota" } });
    const { recoverable, code } = await failureOf(api, new Response(body, { status: 429 }));
    assertEquals([recoverable, code], [false, "unavailable"]);
  });

  Deno.test(`${name} limits how much of an error body it reads and repeats`, async () => {
    let read = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        read += 1_024;
        controller.enqueue(new Uint8Array(1_024).fill(97));
      },
    }, { highWaterMark: 0 });
    const { message } = await failureOf(api, new Response(endless, { status: 500 }));
    assertEquals([read, message], [8_192, `Cannot ask ${id}: 500 ${"a".repeat(1_000)}…`]);
  });

  Deno.test(`${name} reports the beginning of an error body that was cut`, async () => {
    const { body } = respond("Bad gate", new Error("reset"))();
    assertEquals(
      (await failureOf(api, new Response(body, { status: 502 }))).message,
      `Cannot ask ${id}: 502 Bad gate`,
    );
  });

  Deno.test(`${name} names a page, JSON or nothing instead of a stream, and does not follow redirects`, async () => {
    const page = new Response("Ollama is running", { headers: { "content-type": "text/html; charset=utf-8" } });
    const { message, recoverable } = await failureOf(api, page);
    assertEquals([message, recoverable], [
      `Cannot read the response of ${id}: expected an event stream, got text/html: Ollama is running`,
      false,
    ]);
    const json = await failureOf(api, Response.json({ choices: [] }));
    assertEquals(
      json.message,
      `Cannot read the response of ${id}: expected an event stream, got application/json: {"choices":[]}`,
    );
    const refused = await failureOf(api, Response.json({ error: { message: "No.", type: "authentication_error" } }));
    assertEquals([refused.message, refused.code], [`Cannot ask ${id}: 200 No.`, "unauthorized"]);
    const text = await failureOf(api, new Response("Hello"));
    assertEquals(
      [text.message, text.recoverable],
      [`Cannot read the response of ${id}: expected an event stream, got text/plain without events`, true],
    );
    const nothing = await failureOf(api, new Response(null, { status: 204 }));
    assertEquals(
      nothing.message,
      `Cannot read the response of ${id}: expected an event stream, got a response without events`,
    );
    await using other = socket();
    const moved = `HTTP/1.1 307 Temporary Redirect\r\nlocation: ${other.url}\r\ncontent-length: 0\r\n\r\n`;
    await using server = socket(moved);
    const error = await errorOf(readAll(model({ baseURL: server.url })));
    assertEquals(String(error), `ModelError: Cannot ask ${id}: 307`);
  });

  Deno.test(`${name} masks the key in every error`, async () => {
    const token = "token-0123456789";
    const repeated = `Wrong key ${key}, and ${token}`;
    const secretive = { headers: { authorization: `Bearer ${token}` } };
    const refused = model({ ...secretive, fetch: () => new Response(repeated, { status: 401 }) });
    assertEquals(String(await errorOf(readAll(refused))), `ModelError: Cannot ask ${id}: 401 Wrong key ***, and ***`);
    const broken = model({ ...secretive, fetch: respond(`data: ${JSON.stringify({ error: repeated })}\n\n`) });
    assertEquals(String(await errorOf(readAll(broken))), `ModelError: Cannot ask ${id}: Wrong key ***, and ***`);
    const why = `Cannot reach ${id}: its key or one of its headers contains an invalid character`;
    for (const apiKey of [`${key}\n${key}`, `${key}…`]) {
      assertEquals(assertThrows(() => model({ apiKey }), TypeError).message, why);
    }
  });

  Deno.test(`${name} stops when its signal aborts and releases the connection`, async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    let left = false;
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => controller.signal.addEventListener("abort", () => stream.error(reason)),
      pull: () => new Promise(() => {}),
    });
    const silent = readAll(model({ fetch: () => new Response(body) }), {}, controller.signal);
    controller.abort(reason);
    assertEquals(await errorOf(silent), reason);

    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new TextEncoder().encode(streamUpTo("自在", stream))),
      cancel: () => void (left = true),
    });
    const answered = model({ fetch: () => new Response(endless) });
    const request = { model: answered, instructions: "", messages: [], tools: [], options: {} };
    for await (const _ of answered.stream(request, { signal: new AbortController().signal })) break;
    assertEquals(left, true);
  });

  Deno.test(`${name} sends requests to its baseURL with its headers and options`, async () => {
    const { sent, fetch } = recordRequests(stream);
    const baseURL = "https://example.com/api/?version=1";
    const asked = model({
      fetch,
      baseURL,
      headers: { "X-Custom": "a", "Content-Type": "application/json; charset=utf-8" },
      temperature: 0.5,
      options: { seed: 1, top_p: 0.5, stream: null },
    });
    await readAll(asked, { options: { temperature: 0, provider: { seed: 2 } } });
    const [{ url, headers, body } = { url: "", headers: {}, body: {} }] = sent;
    assertEquals(url, `https://example.com/api${path}?${["version=1", query].filter(Boolean).join("&")}`);
    assertEquals([headers["x-custom"], headers["content-type"]], ["a", "application/json; charset=utf-8"]);
    assertEquals([temperatureIn(body), body.seed, body.top_p, "stream" in body], [0, 2, 0.5, false]);
    for (const baseURL of ["localhost", "localhost:11434", "ftp://example.com", ""]) {
      assertThrows(
        () => model({ baseURL }),
        TypeError,
        `Cannot reach ${id}: expected a baseURL with http:// or https://`,
      );
    }
  });
}
