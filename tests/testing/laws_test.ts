import { agent, type Middleware, type Model, ModelError, rewrite, tool, windowed } from "@jizai/jizai";
import { audit } from "@jizai/jizai/middleware/audit";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { delivery } from "@jizai/jizai/middleware/delivery";
import { fallback } from "@jizai/jizai/middleware/fallback";
import { human } from "@jizai/jizai/middleware/human";
import { inject } from "@jizai/jizai/middleware/inject";
import { logger } from "@jizai/jizai/middleware/logger";
import { optional } from "@jizai/jizai/middleware/optional";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
import { redact } from "@jizai/jizai/middleware/redact";
import { retry } from "@jizai/jizai/middleware/retry";
import { serial } from "@jizai/jizai/middleware/serial";
import { subagents } from "@jizai/jizai/middleware/subagents";
import { timeout } from "@jizai/jizai/middleware/timeout";
import { truncate } from "@jizai/jizai/middleware/truncate";
import { verify } from "@jizai/jizai/middleware/verify";
import { scripted, testMiddleware, type TestOptions } from "@jizai/jizai/testing";
import { assert, assertEquals } from "@std/assert";
import * as z from "zod";
import { importsOf, read } from "../support/source.ts";

/** A tool that waits until its signal aborts. */
const endless = tool({
  name: "endless",
  description: "Never comes to an end",
  input: z.object({}),
  execute: (_, { signal }) => until(signal),
});

function until(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** A person who answers after a moment. */
function soon<T>(value: T, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", leave);
      resolve(value);
    }, 1);
    signal.addEventListener("abort", leave, { once: true });
  });
}

const failing: Middleware = {
  name: "failing",
  tool: () => Promise.reject(new Error("failing always fails")),
  async model(_, next) {
    await next();
    throw new Error("failing always fails");
  },
};

/** Models that answer any number of requests. */
const brief: Model = {
  id: "brief",
  stream: (request, options) => scripted("Briefly.").stream(request, options),
};
const broken: Model = {
  id: "broken",
  stream: (request, options) =>
    scripted({ text: "Brief", error: new ModelError("Overloaded", { recoverable: true }) }).stream(request, options),
};

const cases: Record<string, readonly [make: () => Middleware, options?: TestOptions]> = {
  "audit()": [() => audit(() => {})],
  "audit() with hashes, written late": [() => audit(() => Promise.resolve(), { hash: true })],
  "audit() that cannot write": [() => audit(() => Promise.reject(new Error("full")))],
  "fallback()": [() => fallback([brief, brief])],
  "fallback() after text": [() => fallback([broken, brief], { afterText: true })],
  "human() who agrees": [() => human(() => true)],
  "human() who takes a moment": [() => human((_, { signal }) => soon({ allow: false, reason: "no" }, signal))],
  "compaction()": [() => compaction()],
  "compaction() by a model of its own": [() => compaction({ summarize: brief })],
  "compaction() by a function": [() => compaction({ summarize: (_, { signal }) => soon("Briefly.", signal) })],
  "delivery()": [() => delivery(() => {})],
  "human() who edits": [() => human(() => ({ allow: true, input: { text: "edited" } }))],
  "inject()": [() => inject(({ index }) => `Turn ${index}.`)],
  "logger()": [() => logger(() => {})],
  "optional() around what fails": [() => optional(failing)],
  "permissions()": [() => permissions({ allow: ["careful"], ask: ["echo"], deny: ["fail", "h*"] })],
  "permissions() that deny everything": [() => permissions({ otherwise: "deny" })],
  "rateLimit()": [() => rateLimit({ per: () => "all", limit: 100, window: 60_000 })],
  "redact()": [() => redact()],
  "redact() of secrets that are there": [() => redact({ secrets: ["Again", "Play", "all"], window: 4 })],
  "retry()": [() => retry({ delay: 0 })],
  "retry() after text": [() => retry({ delay: 0, afterText: true, when: () => true })],
  "rewrite()": [() => ({
    model: rewrite({ text: windowed(4, (text) => text.replaceAll("all", "much")), call: (text) => [text, ""] }),
  })],
  "serial()": [() => serial()],
  "serial() for everything": [() => serial("all")],
  "subagents()": [() => subagents([agent({ name: "child", model: scripted("Helped.") })])],
  "timeout()": [() => timeout({ model: 1_000, execute: 1_000 })],
  "timeout() that is reached": [() => timeout(1), { tools: [endless], calls: [["endless", {}]] }],
  "truncate()": [() => truncate({ limit: 4 })],
  "verify()": [() => verify(() => true)],
  "verify() of what is never good": [() => verify(() => "Try again.")],
};

for (const [name, [make, options]] of Object.entries(cases)) {
  Deno.test(`${name} keeps the laws of middleware`, () => testMiddleware(make, options));
}

/** Imports that are not a middleware of their own: a callback, a variant, and an observer of a server. */
const exceptions = ["terminal", "command_hooks", "server_metrics"];

Deno.test("every middleware is tested with testMiddleware(), here or in its own tests", async () => {
  const sources = await read("tests/testing/laws_test.ts");
  const here = sources.flatMap(importsOf).flatMap(({ target }) => target.match(/\/middleware\/(\w+)/)?.[1] ?? []);
  const config = await Deno.readTextFile("deno.json");
  const names = Array.from(config.matchAll(/^ *"\.\/middleware\/(\w+)": /gm), ([, name = ""]) => name);
  assert(names.length > 20);
  const untested = [];
  for (const name of names.filter((name) => !here.includes(name) && !exceptions.includes(name))) {
    const places = ["middleware", "platforms"].flatMap((
      room,
    ) => [`tests/${room}/${name}_test.ts`, `tests/${room}/${name}`]);
    const tests = await read(...places);
    if (!tests.some(({ text }) => text.includes("await testMiddleware("))) untested.push(name);
  }
  assertEquals(untested, []);
});
