/**
 * Prints the weight of bundles, minified and compressed, beside a budget for each. Exits with 1 if one is over its budget.
 *
 * Each row is a file in `bundles/`, bundled as a user would deploy it. From its size the size of another bundle is subtracted: for a feature, the same
 * agent without it; for the agent itself, a file that uses as much of Hono and Zod and imports nothing else. A new feature is one new file and one row.
 *
 * @module
 */
import { deno } from "./kit/processes.ts";
import { type Measure, report } from "./kit/measure.ts";

/** One bundle, and its budget in kilobytes. */
interface Row {
  readonly what: string;
  /** The file in `bundles/`. */
  readonly bundle: string;
  /** The file whose size is subtracted. Default: none. */
  readonly without?: string;
  readonly budget: number;
}

const zod = "base/zod.ts";
const honoAndZod = "base/hono_and_zod.ts";
const served = "served.ts";
const sharedByModels = "models/base.ts";

const rows: readonly Row[] = [
  { what: "an agent with one tool, run, beyond Zod", bundle: "run.ts", without: zod, budget: 11 },
  { what: "served, sessions in memory, beyond Hono and Zod", bundle: served, without: honoAndZod, budget: 17 },
  { what: "served with everything, beyond Hono and Zod", bundle: "everything.ts", without: honoAndZod, budget: 24 },
  { what: "store", bundle: "features/store.ts", without: served, budget: 3 },
  { what: "log", bundle: "features/log.ts", without: served, budget: 3 },
  { what: "sessions and logs in SQLite", bundle: "features/sqlite.ts", without: served, budget: 6.5 },
  { what: "sessions and logs in Postgres", bundle: "features/postgres.ts", without: served, budget: 6.5 },
  { what: "sessions and logs in Redis", bundle: "features/redis.ts", without: served, budget: 7.5 },
  { what: "sessions and logs in D1", bundle: "features/d1.ts", without: served, budget: 6.5 },
  { what: "compaction", bundle: "features/compaction.ts", without: served, budget: 2 },
  { what: "subagents", bundle: "features/subagents.ts", without: served, budget: 1 },
  {
    what: "streamed output",
    bundle: "features/streamed_output.ts",
    without: "features/output.ts",
    budget: 2,
  },
  { what: "screen", bundle: "features/screen.ts", without: served, budget: 2 },
  { what: "provider tools", bundle: "features/provider_tools.ts", without: served, budget: 2.5 },
  { what: "moderation", bundle: "features/moderation.ts", without: "features/screen.ts", budget: 1.5 },
  { what: "cache", bundle: "features/cache.ts", without: "features/key_value.ts", budget: 1.5 },
  { what: "notes", bundle: "features/notes.ts", without: "features/key_value.ts", budget: 1.5 },
  { what: "plan", bundle: "features/plan.ts", without: served, budget: 1 },
  { what: "handoff", bundle: "features/handoff.ts", without: served, budget: 1.2 },
  { what: "tool_search", bundle: "features/tool_search.ts", without: served, budget: 1.2 },
  { what: "trace", bundle: "features/trace.ts", without: served, budget: 0.5 },
  { what: "explain", bundle: "features/explain.ts", without: served, budget: 0.5 },
  { what: "resume tokens", bundle: "features/resume_tokens.ts", without: served, budget: 2 },
  { what: "wire: AI SDK UI", bundle: "wires/ai_sdk.ts", without: served, budget: 3 },
  { what: "wire: AI SDK UI messages", bundle: "wires/ai_sdk_messages.ts", without: served, budget: 3 },
  { what: "wire: chat completions", bundle: "wires/chat_completions.ts", without: served, budget: 3.5 },
  { what: "wire: Responses API", bundle: "wires/responses.ts", without: served, budget: 3 },
  { what: "wire: AG-UI", bundle: "wires/ag_ui.ts", without: served, budget: 3 },
  { what: "model: chat completions", bundle: "models/openai.ts", without: sharedByModels, budget: 3 },
  { what: "model: Responses API", bundle: "models/openai_responses.ts", without: sharedByModels, budget: 3 },
  { what: "model: messages API", bundle: "models/anthropic.ts", without: sharedByModels, budget: 3 },
  { what: "model: Gemini API", bundle: "models/gemini.ts", without: sharedByModels, budget: 3 },
  { what: "client", bundle: "client.ts", budget: 2 },
];

const sizes = new Map<string, Promise<number>>();
const measures: Measure[] = [];
for (const { what, bundle, without, budget } of rows) {
  const figure = await sizeOf(bundle) - (without === undefined ? 0 : await sizeOf(without));
  measures.push({ what, figure, atMost: budget, unit: "KB" });
}
measures.push({ what: "start, beyond Hono and Zod", figure: await startTime(), atMost: 10, unit: "ms" });
report(measures);

/** Kilobytes of a bundle, compressed. */
function sizeOf(name: string): Promise<number> {
  const size = sizes.get(name) ?? bundled(name, "esm").then(compressed);
  sizes.set(name, size);
  return size;
}

async function compressed(text: string): Promise<number> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return (await new Response(stream).arrayBuffer()).byteLength / 1_024;
}

/** Bundles a file of `bundles/` as it would be deployed. */
async function bundled(name: string, format: "esm" | "cjs"): Promise<string> {
  const path = new URL(`bundles/${name}`, import.meta.url).pathname;
  return await deno(["bundle", "--quiet", "--platform", "browser", "--format", format, "--minify", path]);
}

/** Milliseconds that the served agent takes to start beyond Hono and Zod: the shortest of several starts of each, since a disturbance only adds to it. */
async function startTime(): Promise<number> {
  const scripts = { served: await bundled(served, "cjs"), base: await bundled(honoAndZod, "cjs") };
  const shortest = { served: Infinity, base: Infinity };
  for (let round = 0; round < 15; round++) {
    shortest.served = Math.min(shortest.served, await started(scripts.served));
    shortest.base = Math.min(shortest.base, await started(scripts.base));
  }
  return shortest.served - shortest.base;
}

/**
 * Milliseconds in which a fresh process compiles a bundle that it has in memory, runs it, and answers a first request. Deno's own loading of modules is left
 * out, as a Worker loads them differently.
 */
async function started(script: string): Promise<number> {
  const code = `
    const script = await new Response(Deno.stdin.readable).text();
    const module = { exports: {} };
    const start = performance.now();
    new Function("module", "exports", script)(module, module.exports);
    const { status } = await module.exports.default.request("/health");
    if (status !== 200) throw new Error("Cannot measure the start: GET /health answered " + status);
    console.log(performance.now() - start);
  `;
  return Number(await deno(["eval", code], script));
}
