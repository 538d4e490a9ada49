/**
 * MCP servers whose lists of tools and results have the forms that real servers were publicly reported to send.
 *
 * @module
 */
import { agent, type CallResult, type Message } from "@jizai/jizai";
import { mcp, type McpServer, type McpTransport } from "@jizai/jizai/middleware/mcp";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals, assertMatch } from "@std/assert";
import type { Chance } from "./seeded.ts";

/** A JSON object. */
type JsonObject = { readonly [name: string]: unknown };

/** A tool that a server lists. */
export interface ListedTool {
  /** The entry of the list. */
  readonly entry: unknown;
  /** The name, if the tool can be used. */
  readonly usable?: string;
  /** The text that names the tool in a report, if it cannot be used. */
  readonly fault?: RegExp;
}

/** A result, and its content as the model reads it. */
export interface OddResult {
  readonly result: unknown;
  readonly expected: Omit<CallResult, "callId" | "name">;
  /** The error of the protocol in place of a result. It is also reported. */
  readonly error?: unknown;
}

/** A server: its tools, their results, and its answers. */
export interface OddServer {
  readonly tools: readonly ListedTool[];
  /** The results of calls, by the name of the tool. */
  readonly results: ReadonlyMap<string, OddResult>;
  /** The forms that the server combines, for the message of a failure. */
  readonly form: string;
  /** Whether the server speaks the protocol of 2026. */
  readonly isModern: boolean;
  /** Returns the messages that answer a request. */
  readonly answer: (request: JsonObject) => readonly unknown[];
}

const object = { type: "object", properties: { city: { type: "string" } } } as const;

/** Entries that cannot be used, with the text that their report contains. `NAME` stands for the name. */
const unusable = {
  "no input schema": [{ name: "NAME" }, "`inputSchema` is missing"],
  "a null input schema": [{ name: "NAME", inputSchema: null }, "`inputSchema` is null"],
  "an empty input schema": [{ name: "NAME", inputSchema: {} }, "`inputSchema.type` is missing"],
  "an untyped input schema": [{ name: "NAME", inputSchema: { properties: {} } }, "`inputSchema.type` is missing"],
  "a schema in a text": [{ name: "NAME", inputSchema: JSON.stringify(object) }, "`inputSchema` is "],
  "a schema of another type": [{ name: "NAME", inputSchema: { type: "string" } }, '`inputSchema.type` is "string"'],
  "a list of types": [{ name: "NAME", inputSchema: { type: ["object"] } }, "`inputSchema.type` is "],
  "a null description": [{ name: "NAME", description: null, inputSchema: object }, "`description` is null"],
  "a description that is an object": [{ name: "NAME", description: {}, inputSchema: object }, "`description` is {}"],
  "properties in a list": [
    { name: "NAME", inputSchema: { type: "object", properties: ["city"] } },
    "`inputSchema.properties`",
  ],
  "a property that is no schema": [
    { name: "NAME", inputSchema: { type: "object", properties: { a: "string" } } },
    '`inputSchema.properties.a` is "string"',
  ],
  "required as true": [
    { name: "NAME", inputSchema: { type: "object", properties: { a: { type: "object", required: true } } } },
    "required` is true",
  ],
  "anyOf that is no list": [{ name: "NAME", inputSchema: { type: "object", anyOf: {} } }, "`inputSchema.anyOf` is {}"],
  "no name": [{ inputSchema: object }, "a tool of .*`name` is missing"],
  "a null name": [{ name: null, inputSchema: object }, "a tool of .*`name` is null"],
  "a number": [7, "a tool of .*`name` is missing"],
  "null": [null, "a tool of .*`name` is missing"],
} as const satisfies { readonly [form: string]: readonly [unknown, string] };

/** Members of entries that can be used. */
const usable = {
  "plain": { inputSchema: object },
  "nulls": {
    title: null,
    annotations: null,
    outputSchema: null,
    icons: null,
    _meta: null,
    execution: null,
    inputSchema: object,
  },
  "members of wrong types": {
    title: 7,
    annotations: "none",
    outputSchema: "x",
    icons: {},
    _meta: [],
    inputSchema: object,
  },
  "an annotation as a text": { annotations: { readOnlyHint: "true", title: 1 }, inputSchema: object },
  "an output schema that is no schema": { outputSchema: { type: 7, properties: [] }, inputSchema: object },
  "an output schema that no result fits": {
    outputSchema: { type: "object", required: ["nowhere"], properties: { nowhere: { type: "number" } } },
    inputSchema: object,
  },
  "an output schema with a broken reference": { outputSchema: { $ref: "#/$defs/nowhere" }, inputSchema: object },
  "nulls in the schema": {
    inputSchema: {
      type: "object",
      properties: { city: { type: "string", description: null, enum: null } },
      required: null,
    },
  },
  "references": {
    inputSchema: {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { city: { $ref: "#/definitions/City" } },
      definitions: { City: { type: "string" } },
    },
  },
  "a schema that contains itself": {
    inputSchema: { type: "object", properties: { next: { $ref: "#" }, city: { type: "string" } } },
  },
  "empty lists in place of objects": { // PHP
    annotations: [],
    inputSchema: { type: "object", properties: [], required: [], $defs: [] },
  },
  "no properties": { inputSchema: { type: "object" } },
  "unknown members": { inputSchema: { ...object, "x-order": 1 }, version: 2, tags: ["a"] },
} as const satisfies { readonly [form: string]: JsonObject };

const text = (text: string) => ({ type: "text", text }) as const;
const media = (mediaType: string, data: string) => ({ type: "media", mediaType, data }) as const;

/** Contents, and the parts that the model reads. */
const contents = {
  "text": [{ type: "text", text: "Sun" }, text("Sun")],
  "text with nulls": [{ type: "text", text: "Sun", annotations: null, _meta: null }, text("Sun")],
  "text without a type": [{ text: "Sun" }, text("Sun")],
  "text that is a number": [{ type: "text", text: 7 }, text("7")],
  "text that is an object": [{ type: "text", text: { a: 1 } }, text('{"a":1}')],
  "text in place of a block": ["Sun", text("Sun")],
  "an image": [{ type: "image", data: "aW1n", mimeType: "image/png" }, media("image/png", "aW1n")],
  "an image in lines": [{ type: "image", data: "aW\n1n\n", mimeType: "image/png" }, media("image/png", "aW1n")],
  "an image as a data URL": [
    { type: "image", data: "data:image/png;base64,aW1n", mimeType: "image/jpeg" },
    media("image/jpeg", "aW1n"),
  ],
  "an image whose type is in its data": [
    { type: "image", data: "data:image/png;base64,aW1n" },
    media("image/png", "aW1n"),
  ],
  "an image that is no base64": [
    { type: "image", data: "<png>", mimeType: "image/png" },
    text("(The image cannot be shown: its data is not base64.)"),
  ],
  "an image without a type": [
    { type: "image", data: "aW1n", mimeType: null },
    text("(The image cannot be shown: it has no media type.)"),
  ],
  "audio": [{ type: "audio", data: "c25k", mimeType: "audio/wav" }, media("audio/wav", "c25k")],
  "a blob": [{ type: "blob", data: "Yg==", mimeType: "a/b" }, media("a/b", "Yg==")], // the server of files
  "a video": [{ type: "video", data: "dmlk", mimeType: "video/mp4" }, media("video/mp4", "dmlk")],
  "a resource": [{ type: "resource", resource: { uri: "a:b", text: "in a" } }, text("in a")],
  "a resource without an address": [{ type: "resource", resource: { text: "in a", mimeType: null } }, text("in a")],
  "a file": [{ type: "resource", resource: { uri: "a:b", blob: "Yg==", mimeType: "a/b" } }, media("a/b", "Yg==")],
  "a file that is no base64": [
    { type: "resource", resource: { uri: "a:b", blob: "é" } },
    text("(The resource a:b cannot be shown: its data is not base64.)"),
  ],
  "a resource without content": [{ type: "resource", resource: { uri: "a:b" } }, text('{"uri":"a:b"}')],
  "a resource that is null": [{ type: "resource", resource: null }, text('{"type":"resource","resource":null}')],
  "a link": [{ type: "resource_link", uri: "https://a/b", name: "b" }, text("b: https://a/b")],
  "a link whose title is null": [
    { type: "resource_link", uri: "https://a/b", name: "b", title: null },
    text("b: https://a/b"),
  ],
  "a file without an address": [
    { type: "resource", resource: { blob: "é" } },
    text("(The resource cannot be shown: its data is not base64.)"),
  ],
  "a link without a name": [{ type: "resource_link", uri: "https://a/b" }, text("https://a/b: https://a/b")],
  "an unknown type": [{ type: "table", rows: [[1]] }, text('{"type":"table","rows":[[1]]}')],
  "an unknown type with a text": [{ type: "markdown", text: "*Sun*" }, text("*Sun*")],
} as const satisfies { readonly [form: string]: readonly [unknown, CallResult["parts"][number]] };

const ok = (...parts: CallResult["parts"]) => ({ status: "ok", parts }) as const;
const failed = (...parts: CallResult["parts"]) => ({ status: "error", parts }) as const;

/** Whole results, and how the model reads them. */
const results = {
  "no content": [{ content: [] }, ok()],
  "null content": [{ content: null, structuredContent: null }, ok()],
  "content as a text": [{ content: "Sun" }, ok(text("Sun"))],
  "content as one block": [{ content: { type: "text", text: "Sun" } }, ok(text("Sun"))],
  "content with null": [{ content: [null, { type: "text", text: "Sun" }] }, ok(text("Sun"))],
  "structured content alone": [{ structuredContent: { a: 1 } }, ok(text('{"a":1}'))],
  "structured content that is a list": [{ content: [], structuredContent: [1] }, ok(text("[1]"))],
  "the result of 2024": [{ toolResult: { a: 1 } }, ok(text('{"toolResult":{"a":1}}'))],
  "a bare object": [{ temperature: 20, _meta: null }, ok(text('{"temperature":20}'))],
  "a text": ["Sun", ok(text("Sun"))],
  "a list": [[{ type: "text", text: "Sun" }], ok(text("Sun"))],
  "an empty list": [[], ok()],
  "null": [null, ok()],
  "a null flag": [{ content: [{ type: "text", text: "Sun" }], isError: null, _meta: null }, ok(text("Sun"))],
  "a failure": [{ content: [{ type: "text", text: "Rain" }], isError: true }, failed(text("Rain"))],
  "a failure as a text": [{ content: "Rain", isError: "true" }, failed(text("Rain"))],
  "a failure without content": [
    { isError: true },
    failed(text("The tool failed, and its MCP server gives no reason.")),
  ],
  "a failure with structured content": [{ isError: true, structuredContent: { code: 7 } }, failed(text('{"code":7}'))],
} as const satisfies { readonly [form: string]: readonly [unknown, OddResult["expected"]] };

/** Errors of the protocol. */
const errors = {
  "an error": [{ code: -32_000, message: "Rain" }, "Rain"],
  "an error as a text": ["Rain", "Rain"],
  "an error without a code": [{ message: "Rain" }, "Rain"],
  "an error with a code in a text": [{ code: "E_RAIN", message: "Rain" }, "Rain"],
} as const satisfies { readonly [form: string]: readonly [unknown, string] };

/** The forms of the message around a result. */
const envelopes = {
  "plain": (message: JsonObject) => message,
  "a null error": (message: JsonObject) => "error" in message ? message : { ...message, error: null },
  "a null result": (message: JsonObject) => "result" in message ? message : { ...message, result: null },
  "neither a result nor an error": ({ result, ...message }: JsonObject) =>
    result === null || result === undefined ? message : { ...message, result },
  "an unknown member": (message: JsonObject) => ({ ...message, trace: "x" }),
  "an id as a text": (message: JsonObject) => ({ ...message, id: String(message.id) }),
  "the method of the request": (message: JsonObject) =>
    message.result === null ? message : { ...message, method: "tools/call", params: null }, // riza
  "no id": ({ id: _, ...message }: JsonObject) => "error" in message ? { ...message, id: null } : { ...message, id: _ },
  "no version": ({ jsonrpc: _, ...message }: JsonObject) => message,
} as const;

/** Messages that a server sends before a response. */
const notifications = {
  "nothing": () => [],
  "a log": () => [{ method: "notifications/message", params: { level: "loud", data: null } }],
  "progress as a text": (token: unknown) => [
    { method: "notifications/progress", params: { progressToken: token, progress: "50%" } },
  ],
  "progress of another request":
    () => [{ method: "notifications/progress", params: { progressToken: "x", progress: 1 } }],
  "a ping": () => [{ id: 1, method: "ping" }],
  "a question": () => [{ id: "q", method: "elicitation/create", params: { message: "Which?" } }],
  "nulls of a response": () => [{ id: null, method: "notifications/x", params: null, result: null, error: null }],
  "a changed list": () => [{ method: "notifications/tools/list_changed", params: null }],
  "an unknown notification": () => [{ method: "notifications/x_vendor", params: [] }],
} as const satisfies { readonly [form: string]: (token: unknown) => readonly JsonObject[] };

/** The first results of servers. */
const greetings = {
  "plain": { capabilities: { tools: { listChanged: true } }, serverInfo: { name: "odd", version: "1" } },
  "nulls": {
    capabilities: { tools: { listChanged: null }, prompts: null, logging: null, experimental: null },
    serverInfo: { name: "odd", version: null, title: null },
    instructions: null,
    _meta: null,
  },
  "lists": { capabilities: { tools: [], resources: [] }, serverInfo: [] }, // PHP
  "the tools as capabilities": { capabilities: { tools: [{ name: "a" }] }, serverInfo: { name: "odd" } }, // Predbat
  "no information": { capabilities: { tools: true } },
} as const satisfies { readonly [form: string]: JsonObject };

/** The members of a page, by the number of the page. */
const pages = {
  "one page": () => ({}),
  "a null cursor": () => ({ nextCursor: null }),
  "an empty cursor for ever": () => ({ nextCursor: "" }),
  "the same cursor for ever": () => ({ nextCursor: "again" }),
  "a page for each tool": (page: number, count: number) => page + 1 < count ? { nextCursor: `${page + 1}` } : {},
  "pages in a circle": (page: number, count: number) => ({ nextCursor: `${(page + 1) % Math.max(1, count)}` }),
} as const satisfies { readonly [form: string]: (page: number, count: number) => JsonObject };

/** Creates the server that `chance` determines. A transport of its own checks the first result before `mcp()` can read it, so that one is as documented. */
export function oddServer(chance: Chance, sending: Sending): OddServer {
  const { below } = chance;
  const keyOf = <T extends object>(forms: T) => {
    const keys = Object.keys(forms) as (keyof T & string)[];
    return keys[below(keys.length)]!;
  };
  const [page, notice, wrapping] = [keyOf(pages), keyOf(notifications), keyOf(envelopes)];
  const envelope = sending === "memory" && wrapping === "no id" ? "plain" : wrapping; // only a response over HTTP has no need of it
  const greeting = sending === "memory" ? "plain" : keyOf(greetings);
  const [isModern, form] = [below(2) === 0, [page, envelope, notice, greeting] as string[]];
  const answers = new Map<string, OddResult>();

  function anyTool(_: unknown, at: number): ListedTool {
    const name = `tool_${at}`;
    if (below(2) === 0) {
      const key = keyOf(unusable);
      const [entry, fault] = unusable[key];
      form.push(key);
      const isNamed = JSON.stringify(entry).includes("NAME");
      return {
        entry: JSON.parse(JSON.stringify(entry).replace("NAME", name)),
        fault: new RegExp(isNamed ? `tool "${name}".*(${fault})` : fault),
      };
    }
    const key = keyOf(usable);
    const answer = anyAnswer();
    form.push(key, answer.form);
    answers.set(name, answer);
    return { entry: { name, ...usable[key] }, usable: name };
  }

  function anyAnswer(): OddResult & { readonly form: string } {
    const kind = below(6);
    if (kind === 0) {
      const key = keyOf(errors);
      const [error, message] = errors[key];
      return { form: key, error, result: null, expected: failed(text(message)) };
    }
    if (kind < 4) {
      const key = keyOf(results);
      const [result, expected] = results[key];
      return { form: key, result, expected };
    }
    const keys = Array.from({ length: 1 + below(4) }, () => keyOf(contents));
    const links = keys.filter((key) => key.startsWith("a link"));
    return {
      form: keys.join(", "),
      result: { content: keys.map((key) => contents[key][0]) },
      expected: {
        ...ok(...keys.map((key) => contents[key][1])),
        ...links.length > 0 && {
          artifacts: links.map((key) => ({
            uri: "https://a/b",
            name: key === "a link without a name" ? "https://a/b" : "b",
          })),
        },
      },
    };
  }

  const tools = Array.from({ length: below(7) }, anyTool);
  const isPaged = page === "a page for each tool" || page === "pages in a circle";
  const meta = isModern ? { resultType: "complete" } : {};

  function resultOf({ method, params = {} }: JsonObject): JsonObject {
    const { cursor = "0", name } = Object(params);
    const listed = tools.map(({ entry }) => entry);
    const at = Number(cursor);
    const greeted = greetings[greeting];
    switch (method) {
      case "server/discover":
        return isModern
          ? { result: { ...greeted, ...meta, supportedVersions: ["2026-07-28"], ttlMs: 0, cacheScope: "private" } }
          : { error: { code: -32_601, message: "unknown" } };
      case "initialize":
        return { result: { ...greeted, protocolVersion: "2025-06-18" } };
      case "tools/list":
        return {
          result: { ...meta, tools: isPaged ? listed.slice(at, at + 1) : listed, ...pages[page](at, listed.length) },
        };
      default: {
        const { error, result } = answers.get(name)!;
        return error !== undefined ? { error } : { result };
      }
    }
  }

  return {
    tools,
    results: answers,
    isModern,
    form: form.join("; "),
    answer(request) {
      const { id, method, params } = request;
      const message = { jsonrpc: "2.0", id, ...resultOf(request) };
      const isOdd = /^tools/.test(String(method));
      const before = notifications[notice](Object(Object(params)._meta).progressToken);
      return isOdd ? [...before.map((each) => ({ jsonrpc: "2.0", ...each })), envelopes[envelope](message)] : [message];
    },
  };
}

/** A way to send the messages that answer a request: over HTTP as JSON or events, or by a transport without a network. */
export type Sending = "JSON" | "events" | "memory";

/** A served server, closed when it is disposed of. */
interface Served extends AsyncDisposable {
  /** The options of the server in `mcp()`. */
  readonly options: McpServer;
  /** The methods of the received requests. */
  readonly methods: readonly string[];
}

/** Serves a server. */
function serve({ answer }: OddServer, sending: Sending): Served {
  const methods: string[] = [];
  function receive(message: JsonObject): readonly unknown[] {
    if (message.id === undefined || message.method === undefined) return [];
    methods.push(String(message.method));
    return answer(message);
  }
  if (sending === "memory") {
    return { options: { transport: () => transportTo(receive) }, methods, [Symbol.asyncDispose]: async () => {} };
  }
  const http = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const messages = receive(await request.json());
    if (messages.length === 0) return new Response(null, { status: 202 });
    if (sending === "JSON") return Response.json(messages.at(-1));
    const events = messages.map((message) => `event: message\ndata: ${JSON.stringify(message)}\n\n`);
    return new Response(events.join(""), { headers: { "content-type": "text/event-stream" } });
  });
  const url = `http://127.0.0.1:${http.addr.port}/mcp`;
  return { options: { url }, methods, [Symbol.asyncDispose]: () => http.shutdown() };
}

/** Returns a transport that delivers messages as they are. */
function transportTo(receive: (message: JsonObject) => readonly unknown[]): McpTransport {
  const transport: McpTransport = {
    start: () => Promise.resolve(),
    close: () => Promise.resolve(transport.onclose?.()),
    send(message) {
      for (const answer of receive(message as JsonObject)) { // a message is an object
        queueMicrotask(() => transport.onmessage?.(answer as object));
      }
      return Promise.resolve();
    },
  };
  return transport;
}

/** Fails unless each tool of a server that can be used is there, each other one is reported, and each content arrives. */
export async function checkOddServer(server: OddServer, sending: Sending): Promise<void> {
  try {
    await using served = serve(server, sending);
    await checkServed(server, served.options);
    assertEquals(served.methods.includes("initialize"), !server.isModern);
  } catch (cause) {
    throw new Error(`The server has the form: ${server.form}`, { cause });
  }
}

async function checkServed(server: OddServer, options: McpServer): Promise<void> {
  const names = server.tools.flatMap(({ usable }) => usable === undefined ? [] : [usable]);
  const model = scripted({ calls: names.map((name) => [`mcp__s__${name}`, { city: "Kyoto" }] as const) }, "Done.");
  const reported: string[] = [];
  const { messages } = await agent({ model, use: [mcp({ servers: { s: { ...options, time: 5_000 } } })] }).run({
    prompt: "Go",
    onError: (error) => void reported.push(String(error)),
  }).result;
  assertEquals(model.requests[0]?.tools.map(({ name }) => name), names.map((name) => `mcp__s__${name}`));
  const errors = names.filter((name) => server.results.get(name)?.error !== undefined);
  const unusable = new Map(server.tools.flatMap(({ fault }) => fault ? [[fault.source, fault]] : []));
  const faults = [...unusable.values(), ...errors.map(() => /^ToolError: Rain$/)];
  assertEquals(reported.length, faults.length, reported.join("\n"));
  for (const [at, fault] of faults.entries()) assertMatch(reported[at] ?? "", fault);
  assertEquals(resultsOf(messages), names.map((name) => server.results.get(name)!.expected));
}

/** Returns the results of calls, without the ids and names of the calls. */
export function resultsOf(messages: readonly Message[]): readonly Omit<CallResult, "callId" | "name">[] {
  return messages.flatMap((message) => message.role === "tool" ? message.results : [])
    .map(({ callId: _, name: __, ...rest }) => rest);
}
