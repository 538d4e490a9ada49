/**
 * Options as they come from a file or from code without types: what a guard cannot understand is an error when it is created.
 */
import type { Middleware } from "@jizai/jizai";
import { budget } from "@jizai/jizai/middleware/budget";
import { cache } from "@jizai/jizai/middleware/cache";
import { callRate } from "@jizai/jizai/middleware/call_rate";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { moderation } from "@jizai/jizai/middleware/moderation";
import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
import { redact } from "@jizai/jizai/middleware/redact";
import { timeout } from "@jizai/jizai/middleware/timeout";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { assert, assertEquals, assertThrows } from "@std/assert";

const keyValue = memoryKeyValue();
const moderator = { moderate: () => Promise.resolve({ flagged: false, categories: [] }) };
const rate = { limit: 1, window: 1_000, per: () => "all" };
const time = "expected a positive number up to 2147483647 milliseconds";

/** Creates a middleware with options of any type. */
type Create = (options: never) => Middleware;

/** Options by the function that refuses them, each with the end of the error. */
const refused: Readonly<Record<string, readonly [Create, ...(readonly [unknown, string])[]]>> = {
  timeout: [
    timeout,
    [undefined, `the time is undefined; ${time}`],
    ["5s", `the time is 5s; ${time}`],
    [{ execute: "5000" }, `the time is 5000; ${time}`],
    [{ model: null }, `the time is null; ${time}`],
    [null, "got Null; expected an object with model, execute"],
    [{ tool: 5_000 }, 'there is no option "tool"; expected one of model, execute'],
  ],
  budget: [
    budget,
    [{ token: 5 }, 'there is no option "token"; expected one of tokens, cost, calls, ms, prices, reserve, name'],
    [null, "got Null; expected an object with tokens, cost, calls, ms, prices, reserve, name"],
  ],
  callRate: [
    callRate,
    [{ ...rate, keyvalue: keyValue }, 'there is no option "keyvalue"; expected one of per, limit, window, keyValue'],
    [{ ...rate, window: "1000" }, "`window` is 1000; expected a positive number of milliseconds"],
    [undefined, "got Undefined; expected an object with per, limit, window, keyValue"],
  ],
  rateLimit: [
    rateLimit,
    [{ ...rate, keyvalue: keyValue }, 'there is no option "keyvalue"; expected one of per, limit, window, keyValue'],
    [{ ...rate, window: "1000" }, "`window` is 1000; expected a positive number of milliseconds"],
  ],
  cache: [
    cache,
    [undefined, "got Undefined; expected an object with keyValue, expireIn, model, tools, per"],
    [{}, "it has no database; expected `keyValue`, such as memoryKeyValue()"],
    [{ keyValue, expireIn: "abc" }, '`expireIn` is "abc"; expected a positive number of milliseconds'],
    [{ keyValue, expireIn: 0 }, "`expireIn` is 0; expected a positive number of milliseconds"],
    [{ keyValue, model: "false" }, '`model` is "false"; expected true, false or a function'],
    [{ keyValue, per: "user" }, '`per` is "user"; expected a function'],
    [{ keyValue, tools: "read_file" }, "`tools` is read_file; expected a list of names, or a function"],
    [
      { keyValue, key: () => "user" },
      'there is no option "key"; expected one of keyValue, expireIn, model, tools, per',
    ],
  ],
  mcp: [
    mcp,
    [undefined, "got Undefined; expected an object with servers"],
    [{}, "it has no servers; expected `servers`, an object with a server for each name"],
    [
      { servers: new Map([["docs", { url: "https://docs.example/mcp" }]]) },
      "it has no servers; expected `servers`, an object with a server for each name",
    ],
    [{ mcpServers: {} }, 'there is no option "mcpServers"; expected one of servers'],
  ],
  redact: [
    redact,
    [{ secret: ["hunter2"] }, 'there is no option "secret"; expected one of secrets, patterns, window'],
    [["hunter2"], "got Array; expected an object with secrets, patterns, window"], // without the secret
    [{ secrets: "hunter2" }, "`secrets` is not a list of texts; expected texts"],
    [{ secrets: [7_231] }, "`secrets` is not a list of texts; expected texts"],
    [
      { patterns: ["sk-.*"] },
      "`patterns` is not a list of regular expressions; expected new RegExp(text) for a text",
    ],
  ],
  moderation: [
    moderation,
    [{}, "it has no service; expected `moderator`, such as openaiModerator({ apiKey })"],
    [{ moderator, input: null }, "`input` is null; expected true or false"],
    [{ moderator, output: 0 }, "`output` is 0; expected true or false"],
    [{ moderator, timeout: "10" }, `\`timeout\` is 10; ${time}`],
    [{ moderator, timeout: NaN }, `\`timeout\` is NaN; ${time}`],
    [{ moderator, onFlagged: "log" }, '`onFlagged` is "log"; expected a function'],
    [{ moderator, replacement: 5 }, "`replacement` is 5; expected a text"],
    [{ moderator, reason: null }, "`reason` is null; expected a text"],
    [
      { moderator, onFlag() {} },
      'there is no option "onFlag"; expected one of moderator, window, timeout, replacement, reason, onFlagged, input, output, media',
    ],
  ],
};

for (const [name, [create, ...cases]] of Object.entries(refused)) {
  Deno.test(`${name}() throws for options from JSON that it cannot understand`, () => {
    for (const [options, error] of cases) {
      const { name: type } = assertThrows(() => create(options as never), Error, `Cannot create ${name}(): ${error}`); // any type, as from JSON
      assert(["TypeError", "RangeError"].includes(type), `${name}() threw a ${type}`);
    }
  });
}

/** Options that are accepted, by the function that accepts them. */
const accepted: Readonly<Record<string, readonly [Create, object]>> = {
  timeout: [timeout, { model: 5_000, execute: undefined }],
  budget: [budget, { tokens: 5, prices: undefined, name: undefined }],
  callRate: [callRate, { ...rate, keyValue: undefined }],
  rateLimit: [rateLimit, { ...rate, keyValue: undefined }],
  cache: [cache, { keyValue, expireIn: undefined, model: undefined, tools: undefined, per: undefined }],
  mcp: [mcp, { servers: { docs: { url: "https://docs.example/mcp", headers: undefined, time: undefined } } }],
  redact: [redact, { secrets: ["hunter2"], patterns: undefined, window: undefined }],
  moderation: [
    moderation,
    {
      moderator,
      window: undefined,
      timeout: undefined,
      replacement: undefined,
      reason: undefined,
      onFlagged: undefined,
    },
  ],
};

for (const [name, [create, options]] of Object.entries(accepted)) {
  Deno.test(`${name}() accepts options that are undefined, and an instance of a class as its options`, () => {
    class Options {
      constructor() {
        Object.assign(this, options);
      }
    }
    for (const given of [options, new Options()]) assertEquals(typeof create(given as never), "object"); // any type
  });
}

Deno.test("budget() throws for amounts and prices from JSON that are no numbers", () => {
  for (const value of ["1000", null, true]) {
    const end = "expected a number of 0 or more";
    const limits = { tokens: value as never }; // as it comes from a file
    assertThrows(() => budget(limits), RangeError, `Cannot budget ${value} for "tokens": ${end}`);
    const prices = { some: { input: value as never, output: 1 } };
    assertThrows(() => budget({ cost: 1, prices }), RangeError, `Cannot budget ${value} for "input" of "some": ${end}`);
  }
});

Deno.test("mcp() throws for options of a server that it cannot understand: all of its tools would be offered", () => {
  const docs = { type: "http", url: "https://docs.example/mcp" };
  const cases: readonly (readonly [unknown, string])[] = [
    [
      { ...docs, tool: ["a"] },
      'there is no option "tool"; expected one of url, headers, auth, transport, tools, resources, time, maxBytes, type',
    ],
    [{ ...docs, tools: "search" }, '`tools` is "search"; expected a list of names'],
    [{ ...docs, tools: null }, "`tools` is null; expected a list of names"],
    [null, "got Null; expected an object with url, headers, auth, transport, tools, resources, time, maxBytes, type"],
    [{}, "it has no address; expected `url`, or `transport`, a function"],
    [{ transport: undefined }, "it has no address; expected `url`, or `transport`, a function"],
    [{ transport: "stdio" }, '`transport` is "stdio"; expected a function'],
    [{ ...docs, transport: "http" }, '`transport` is "http"; expected a function'],
    [{ url: null }, "`url` is null; expected an http or https URL"],
  ];
  for (const [server, error] of cases) {
    const create = () => mcp({ servers: { docs: server as never } }); // as it comes from a file
    assertThrows(create, TypeError, `Cannot use MCP server "docs": ${error}`);
  }
  mcp({ servers: { docs } });
});
