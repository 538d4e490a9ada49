import { assert, assertEquals } from "@std/assert";
import { type Attributes, type Exported, exported } from "./collector.ts";

function run(agent: string, session: string, tokens: Attributes, inside: readonly Exported[]): Exported {
  const attributes = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": agent,
    "gen_ai.conversation.id": session,
    "jizai.run.id": "uuid",
    "jizai.run.resumed": false,
    "jizai.run.status": "done",
    "gen_ai.response.finish_reasons": ["stop"],
    ...tokens,
  };
  return { name: `invoke_agent ${agent}`, kind: 1, attributes, failed: false, inside };
}

function chat(session: string, turn: number, attempt: number, outcome: Attributes): Exported {
  const attributes = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "scripted",
    "gen_ai.provider.name": "scripts",
    "gen_ai.request.stream": true,
    "gen_ai.conversation.id": session,
    "jizai.turn": turn,
    "jizai.attempt": attempt,
    ...outcome,
  };
  return { name: "chat scripted", kind: 3, attributes, failed: "error.type" in outcome, inside: [] };
}

function answer(finish: string, tokens: Attributes): Attributes {
  return {
    "gen_ai.response.model": "scripted",
    "gen_ai.response.finish_reasons": [finish],
    "gen_ai.response.time_to_first_chunk": 0,
    ...tokens,
  };
}

function tokens(input: number, output: number, cached?: number): Attributes {
  return {
    "gen_ai.usage.input_tokens": input,
    "gen_ai.usage.output_tokens": output,
    ...(cached && { "gen_ai.usage.cache_read.input_tokens": cached }),
  };
}

function call(
  [agent, session]: readonly [agent: string, session: string],
  name: string,
  id: string,
  extra: Attributes,
  inside: readonly Exported[] = [],
): Exported {
  const attributes = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": name,
    "gen_ai.tool.call.id": id,
    "gen_ai.tool.type": "function",
    "gen_ai.agent.name": agent,
    "gen_ai.conversation.id": session,
    "jizai.turn": 1,
    ...extra,
  };
  return { name: `execute_tool ${name}`, kind: 1, attributes, failed: "error.type" in extra, inside };
}

/** Deno's own span of a request by a tool. */
function get(path: string): Exported {
  const attributes = {
    "http.request.method": "GET",
    "http.response.status_code": "200",
    "url.full": `collector${path}`,
    "url.path": path,
    "url.query": "",
    "url.scheme": "http",
  };
  return { name: "GET", kind: 3, attributes, failed: false, inside: [] };
}

function hook(middleware: string, point: string, turn: number, extra: Attributes): Exported {
  const attributes = { "jizai.middleware": middleware, "jizai.point": point, "jizai.turn": turn, ...extra };
  return { name: `hook ${middleware} ${point}`, kind: 1, attributes, failed: "error.type" in extra, inside: [] };
}

const boss = ["boss", "s1"] as const;
const looked = { "gen_ai.tool.description": "Looks something up" };
const wrapped = { "jizai.changed": ["emit"] };

Deno.test("otel() exports the nested spans of a run and its subagents with Deno's exporter", async () => {
  const { printed, spans } = await exported("telemetry.ts");
  assertEquals(printed, "Found it.\n");
  assertEquals(spans, [
    run("boss", "s1", tokens(502, 52), [
      chat("s1", 1, 1, { "error.type": "529" }),
      chat("s1", 1, 2, answer("tool_call", tokens(200, 20, 100))),
      call(boss, "look", "look_1", looked, [get("/here")]),
      call(boss, "help", "help_1", { "gen_ai.tool.description": "Helps" }, [
        run("helper", "uuid", tokens(2, 2), [
          chat("uuid", 1, 1, answer("tool_call", tokens(1, 1))),
          call(["helper", "uuid"], "look", "look_2", looked, [get("/there")]),
          chat("uuid", 2, 1, answer("stop", tokens(1, 1))),
        ]),
      ]),
      call(boss, "drop", "drop_1", { "error.type": "denied" }),
      chat("s1", 2, 1, answer("stop", tokens(300, 30))),
      hook("retry", "model", 1, { "jizai.did": ["retried", "changed"], ...wrapped }),
      hook("guard", "approval", 1, {
        "jizai.did": ["threw"],
        "gen_ai.tool.call.id": "drop_1",
        "error.type": "_OTHER",
      }),
      hook("retry", "model", 2, { "jizai.did": ["changed"], ...wrapped }),
    ]),
  ]);
});

Deno.test("otel() continues the traces of callers, and links a resumed run to the span before, with Deno's exporter", async () => {
  const { all } = await exported("traced.ts");
  const [first, second] = all.filter(({ name }) => name === "invoke_agent agent")
    .toSorted((a, b) => a.startTimeUnixNano < b.startTimeUnixNano ? -1 : 1);
  assertEquals([first?.traceId, first?.parentSpanId, first?.links], ["a".repeat(32), "a".repeat(16), []]);
  assertEquals([second?.traceId, second?.parentSpanId], ["b".repeat(32), "b".repeat(16)]);
  assertEquals<unknown>(second?.links.map(({ traceId, spanId }) => [traceId, spanId]), [[
    first?.traceId,
    first?.spanId,
  ]]);
});

Deno.test("otel() exports durations and tokens with Deno's exporter", async () => {
  const { metrics } = await exported("telemetry.ts");
  const points = metrics.flatMap(({ name, points }) =>
    points.map(({ attributes, count, sum }) => {
      const values = Object.entries(attributes).toSorted().map(([name, value]) =>
        `${name.replace(/.*\./, "")}=${value}`
      );
      const isTime = name.endsWith(" s");
      assert(!isTime || sum > 0);
      return `${name}: ${values.join(" ")}: ${count}${isTime ? "" : ` of ${sum}`}`;
    })
  );
  const request = "name=chat name=scripts model=scripted";
  const answered = `${request} model=scripted`;
  const inference = "gen_ai.client.inference";
  assertEquals(points.toSorted(), [
    `${inference}.duration s: ${answered}: 4`,
    `${inference}.duration s: type=529 ${request}: 1`,
    `${inference}.operation.input_tokens {token}: ${answered}: 4 of 502`,
    `${inference}.operation.output_tokens {token}: ${answered}: 4 of 52`,
    `${inference}.time_to_first_chunk s: ${answered}: 4`,
    `${inference}.usage.cache_read.input_tokens {token}: ${answered} modality=unknown: 1 of 100`,
    `${inference}.usage.input_tokens {token}: ${answered} modality=unknown: 1 of 502`,
    `${inference}.usage.output_tokens {token}: ${answered} modality=unknown: 1 of 52`,
    "gen_ai.execute_tool.duration s: name=boss name=help type=function: 1",
    "gen_ai.execute_tool.duration s: name=boss name=look type=function: 1",
    "gen_ai.execute_tool.duration s: name=helper name=look type=function: 1",
    "gen_ai.invoke_agent.duration s: name=boss: 1",
    "gen_ai.invoke_agent.duration s: name=helper: 1",
    "gen_ai.invoke_agent.inference_calls {inference_call}: name=boss: 1 of 3",
    "gen_ai.invoke_agent.inference_calls {inference_call}: name=helper: 1 of 2",
    "gen_ai.invoke_agent.tool_calls {tool_call}: name=boss: 1 of 2",
    "gen_ai.invoke_agent.tool_calls {tool_call}: name=helper: 1 of 1",
  ]);
  assertEquals(
    Object.fromEntries(metrics.map(({ name, bounds }) => [name, [bounds.length, bounds[0], bounds.at(-1)]])),
    {
      [`${inference}.duration s`]: [14, 0.01, 81.92],
      [`${inference}.operation.input_tokens {token}`]: [14, 1, 67_108_864],
      [`${inference}.operation.output_tokens {token}`]: [14, 1, 67_108_864],
      [`${inference}.time_to_first_chunk s`]: [14, 0.01, 81.92],
      [`${inference}.usage.cache_read.input_tokens {token}`]: [0, undefined, undefined],
      [`${inference}.usage.input_tokens {token}`]: [0, undefined, undefined],
      [`${inference}.usage.output_tokens {token}`]: [0, undefined, undefined],
      "gen_ai.execute_tool.duration s": [14, 0.01, 81.92],
      "gen_ai.invoke_agent.duration s": [13, 0.1, 409.6],
      "gen_ai.invoke_agent.inference_calls {inference_call}": [8, 1, 128],
      "gen_ai.invoke_agent.tool_calls {tool_call}": [8, 1, 128],
    },
  );
});

Deno.test("otel() exports content only with `content`", async () => {
  const contents = ["Where is it?", "Let me look.", "/here", "Found it."];
  const found = async (...args: string[]) => {
    const { spans } = await exported("telemetry.ts", ...args);
    const own = JSON.stringify(spans, (key, value) => key.startsWith("url.") ? undefined : value);
    return contents.map((text) => own.includes(text));
  };
  assertEquals(await found(), [false, false, false, false]);
  assertEquals(await found("content"), [true, true, true, true]);
});
