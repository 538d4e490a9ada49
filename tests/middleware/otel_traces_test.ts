/**
 * Traces that continue: that of a request in its run, and those of a run that another process continues.
 */
import { agent, ask, type Middleware, tool } from "@jizai/jizai";
import { otel, type Telemetry } from "@jizai/jizai/middleware/otel";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import * as api from "@opentelemetry/api";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { waiting } from "../support/halting.ts";
import { processOf, type Shared, shared } from "../support/process.ts";
import { type Recorded, recorder } from "../support/recorder.ts";
import { eventsOf, first, piecesOf, post } from "../support/requests.ts";

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen." });
const asking: Middleware = { name: "asking", approval: () => Promise.resolve(ask("Sure?")) };
const calling = { calls: [["look", {}] as const] };

/** The ids of the span of a request, and its header. */
function requestSpan(digit: string) {
  const [traceId, spanId] = [digit.repeat(32), digit.repeat(16)];
  return { id: `${traceId}-${spanId}`, header: { traceparent: `00-${traceId}-${spanId}-01` } };
}

/** The ids of a span's parent, and of the spans that it links to. */
function traced({ parentId, links }: Recorded): readonly unknown[] {
  return [parentId, ...links];
}

/** Serves an agent in a process of its own, with a recorder of its own. */
function observed(among: Shared, model: Parameters<typeof agent>[0]["model"]) {
  const { api, spans } = recorder();
  const assistant = agent({ name: "assistant", model, tools: [look], use: [otel(api), asking] });
  const runs = () => spans.filter(({ name }) => name === "invoke_agent assistant");
  return { ...processOf(among, assistant), spans, runs };
}

Deno.test("otel() continues the trace of a request, and links the run in another process to the span before", async () => {
  const among = shared();
  const [asked, answered] = [requestSpan("a"), requestSpan("b")];
  const before = observed(among, scripted(calling));
  const paused = await eventsOf(post(before.app, "/runs", { prompt: "Look" }, asked.header));
  const { session } = first("run.started", paused);
  const after = observed(among, scripted("Seen it."));
  const answers = [{ callId: "call_1", type: "approve" }];
  const rest = await eventsOf(post(after.app, `/sessions/${session}/answers`, { answers }, answered.header));
  assertEquals(rest.at(-1)?.type, "run.finished");
  const [one, two] = [before.runs(), after.runs()];
  assertEquals(one.map(traced), [[asked.id]]);
  assertEquals(two.map(traced), [[answered.id, one[0]?.id]]);
  assertEquals(two[0]?.attributes["jizai.run.id"], one[0]?.attributes["jizai.run.id"]);
  const inside = after.spans.filter(({ parent }) => parent === two[0]).map(({ name }) => name);
  assertEquals(inside, ["execute_tool look", "chat scripted"]);
});

Deno.test("otel() lets a run without a header begin a trace of its own, which links to the span before", async () => {
  const among = shared();
  const before = observed(among, scripted(calling));
  const paused = await eventsOf(post(before.app, "/runs", { prompt: "Look" }, requestSpan("a").header));
  const after = observed(among, scripted("Seen it."));
  const answers = [{ callId: "call_1", type: "deny" }];
  await eventsOf(post(after.app, `/sessions/${first("run.started", paused).session}/answers`, { answers }));
  assertEquals(after.runs().map(traced), [[undefined, before.runs()[0]?.id]]);
});

Deno.test("otel() continues the trace of the request in a process that recovers the run, with a link to the span before", async () => {
  using time = new FakeTime();
  const among = shared();
  const asked = requestSpan("a");
  const dying = observed(among, waiting("Half"));
  await piecesOf(await post(dying.app, "/runs", { prompt: "Hi" }, asked.header)).until("Half");
  dying.kill();
  await advance(time, 30_000);
  const { app, runs } = observed(among, scripted("Whole."));
  const { over } = await app.recover();
  await advanceUntilSettled(time, over);
  assertEquals(runs().map(traced), [[asked.id, dying.runs()[0]?.id]]);
});

Deno.test("otel() continues the trace of a request whose run is in the background", async () => {
  const asked = requestSpan("a");
  const { app, runs } = observed(shared(), scripted("Done."));
  await post(app, "/runs", { prompt: "Hi" }, { ...asked.header, prefer: "respond-async" });
  await app.settled();
  assertEquals(runs().map(traced), [[asked.id]]);
});

Deno.test("otel() ignores a header that is no trace context", async () => {
  const { header: { traceparent } } = requestSpan("a");
  const valid = [traceparent, traceparent.replace(/^00/, "cc") + "-more", traceparent.replace(/1$/, "0")];
  const invalid = [
    "",
    "a",
    traceparent.toUpperCase(),
    traceparent + "-more",
    traceparent.replace(/^00/, "ff"),
    traceparent.replace(/a{32}/, "0".repeat(32)),
    traceparent.replace(/a{16}-01/, `${"0".repeat(16)}-01`),
    traceparent.replace(/^00/, "cc") + `-${"x".repeat(200)}`,
    `${traceparent}, ${traceparent}`,
  ];
  for (const header of [...valid, ...invalid]) {
    const { app, runs } = observed(shared(), scripted("Done."));
    await eventsOf(post(app, "/runs", { prompt: "Hi" }, { traceparent: header }));
    const expected = valid.includes(header) ? requestSpan("a").id : undefined;
    assertEquals([header, runs().map(({ parentId }) => parentId)], [header, [expected]]);
  }
});

/** The run of an agent without a server, with `traceparent`, while `current` is the current span. */
async function parentOf(traceparent: string | undefined, current?: api.SpanContext): Promise<string | undefined> {
  const { api: recording, spans } = recorder();
  const active = () => current ? api.trace.setSpanContext(api.ROOT_CONTEXT, current) : api.ROOT_CONTEXT;
  const telemetry = { ...recording, context: { ...recording.context, active } };
  const assistant = agent({ model: scripted("Hi."), use: [otel(telemetry)] });
  await assistant.run({ prompt: "Hi", ...(traceparent && { traceparent }) }).result;
  return spans[0]?.parentId;
}

Deno.test("otel() prefers the current span to the caller's only within one trace", async () => {
  const { id, header: { traceparent } } = requestSpan("a");
  const server = { traceId: "a".repeat(32), spanId: "b".repeat(16), traceFlags: 1 };
  const job = { ...server, traceId: "c".repeat(32) };
  const idOf = ({ traceId, spanId }: api.SpanContext) => `${traceId}-${spanId}`;
  assertEquals(
    [
      await parentOf(traceparent),
      await parentOf(undefined, job),
      await parentOf(traceparent, server),
      await parentOf(traceparent, job),
      await parentOf("invalid", job),
    ],
    [id, idOf(job), idOf(server), id, idOf(job)],
  );
});

Deno.test("otel() does nothing for a run with a trace context if no provider is registered", async () => {
  let begun = 0;
  const trace: Telemetry["trace"] = {
    getTracer: () => ({ // as the module without a provider does
      ...api.trace.getTracer("none"),
      startSpan(_name, _options, context) {
        begun++;
        return api.trace.wrapSpanContext(
          api.trace.getSpanContext(context ?? api.ROOT_CONTEXT) ?? api.INVALID_SPAN_CONTEXT,
        );
      },
    }),
    setSpan: (context, span) => api.trace.setSpan(context, span),
    getSpanContext: (context) => api.trace.getSpanContext(context),
    setSpanContext: (context, span) => api.trace.setSpanContext(context, span),
  };
  const assistant = agent({ model: scripted("Hi."), use: [otel({ ...api, trace })] });
  await assistant.run({ prompt: "Hi", traceparent: requestSpan("a").header.traceparent }).result;
  assertEquals(begun, 1);
});

Deno.test("otel() keeps the runs of subagents in the trace of the request, also after a pause", async () => {
  const among = shared();
  const asked = requestSpan("a");
  const process = () => {
    const { api, spans } = recorder();
    const watch = otel(api);
    const use = [watch, asking];
    const helper = agent({ name: "helper", model: scripted(calling, "Seen."), tools: [look], use });
    const tools = [asTool(helper, { name: "help", description: "Helps" })];
    const help = { calls: [["help", { prompt: "Help" }] as const] };
    const app = processOf(among, agent({ name: "boss", model: scripted(help, "Done."), tools, use: [watch] })).app;
    return { app, spans };
  };
  const { app, spans } = process();
  const paused = await eventsOf(post(app, "/runs", { prompt: "Hi" }, asked.header));
  const { session } = first("run.started", paused);
  const helped = spans.find(({ name }) => name === "invoke_agent helper");
  assertEquals([helped?.parent?.name, helped?.id.slice(0, 32)], ["execute_tool help", "a".repeat(32)]);
  const { questions } = first("run.paused", paused);
  const answers = questions.map(({ callId }) => ({ callId, type: "approve" }));
  assertEquals(answers.length, 1);
  await eventsOf(post(app, `/sessions/${session}/answers`, { answers }, requestSpan("b").header));
  const again = spans.findLast(({ name }) => name === "invoke_agent helper");
  assertEquals([again?.parent?.name, again?.id.slice(0, 32)], ["execute_tool help", "b".repeat(32)]);
  assertEquals(again && traced(again).slice(1), [helped?.id]);
});
