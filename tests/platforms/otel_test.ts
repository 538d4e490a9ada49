import { assert, assertEquals } from "@std/assert";
import { type Attributes, type Exported, exported } from "./collector.ts";

const duration = "gen_ai.client.operation.duration s";
const usage = "gen_ai.client.token.usage {token}";

function run(agent: string, session: string, tokens: Attributes, inside: readonly Exported[]): Exported {
  const attributes = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": agent,
    "gen_ai.provider.name": "scripts",
    "gen_ai.request.model": "scripted",
    "gen_ai.conversation.id": session,
    "jizai.run.id": "uuid",
    "jizai.run.resumed": false,
    "jizai.run.status": "done",
    ...tokens,
  };
  return { name: `invoke_agent ${agent}`, kind: 1, attributes, failed: false, inside };
}

function chat(session: string, turn: number, attempt: number, outcome: Attributes): Exported {
  const attributes = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "scripted",
    "gen_ai.provider.name": "scripts",
    "gen_ai.conversation.id": session,
    "jizai.turn": turn,
    "jizai.attempt": attempt,
    ...outcome,
  };
  return { name: "chat scripted", kind: 3, attributes, failed: "error.type" in outcome, inside: [] };
}

function answer(finish: string, tokens: Attributes): Attributes {
  return { "gen_ai.response.model": "scripted", "gen_ai.response.finish_reasons": [finish], ...tokens };
}

function tokens(input: number, output: number, cached?: number): Attributes {
  return {
    "gen_ai.usage.input_tokens": input,
    "gen_ai.usage.output_tokens": output,
    ...(cached && { "gen_ai.usage.cache_read.input_tokens": cached }),
  };
}

function call(name: string, id: string, extra: Attributes, inside: readonly Exported[] = []): Exported {
  const attributes = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": name,
    "gen_ai.tool.call.id": id,
    "gen_ai.tool.type": "function",
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

const looked = { "gen_ai.tool.description": "Looks something up" };
const wrapped = { "jizai.changed": ["emit"] };

Deno.test("otel() exports the nested spans of a run and its subagents with Deno's exporter", async () => {
  const { printed, spans } = await exported("telemetry.ts");
  assertEquals(printed, "Found it.\n");
  assertEquals(spans, [
    run("boss", "s1", tokens(502, 52, 100), [
      chat("s1", 1, 1, { "error.type": "529" }),
      chat("s1", 1, 2, answer("tool_call", tokens(200, 20, 100))),
      call("look", "look_1", looked, [get("/here")]),
      call("help", "help_1", { "gen_ai.tool.description": "Helps" }, [
        run("helper", "uuid", tokens(2, 2), [
          chat("uuid", 1, 1, answer("tool_call", tokens(1, 1))),
          call("look", "look_2", looked, [get("/there")]),
          chat("uuid", 2, 1, answer("stop", tokens(1, 1))),
        ]),
      ]),
      call("drop", "drop_1", { "error.type": "denied" }),
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

Deno.test("otel() exports durations and tokens with Deno's exporter", async () => {
  const { histograms } = await exported("telemetry.ts");
  const points = histograms.flatMap(({ name, points }) =>
    points.map(({ attributes, count, sum }) => {
      const values = Object.entries(attributes).toSorted().map(([name, value]) =>
        `${name.replace(/.*\./, "")}=${value}`
      );
      assert(sum > 0);
      return `${name}: ${values.join(" ")}: ${count}${name === usage ? ` of ${sum}` : ""}`;
    })
  );
  const asked = "model=scripted model=scripted";
  assertEquals(points.toSorted(), [
    `${duration}: name=boss name=invoke_agent name=scripts: 1`,
    `${duration}: name=chat name=scripts ${asked}: 4`,
    `${duration}: name=execute_tool name=help: 1`,
    `${duration}: name=execute_tool name=look: 2`,
    `${duration}: name=helper name=invoke_agent name=scripts: 1`,
    `${duration}: type=529 name=chat name=scripts model=scripted: 1`,
    `${usage}: name=chat name=scripts ${asked} type=input: 4 of 502`,
    `${usage}: name=chat name=scripts ${asked} type=output: 4 of 52`,
  ]);
  assertEquals(histograms.map(({ bounds }) => [bounds.length, bounds[0], bounds.at(-1)]), [
    [14, 0.01, 81.92],
    [14, 1, 67_108_864],
  ]);
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
