/**
 * Prints the weight of bundles, minified and compressed, beside a budget for each. Exits with 1 if one is over its budget. `deno task size guard` compares
 * the weights with their ceilings instead, and exits with 1 only if one has grown. `deno task size run.ts features/store.ts` breaks down the minified bytes of
 * those bundles by folder, and `deno task size files run.ts` also by file.
 *
 * Each row is a file in `bundles/`, bundled as a user would deploy it. From its size the size of another bundle is subtracted: for a feature, the same
 * agent without it; for the agent itself, a file that uses as much of Hono and Zod and imports nothing else. A new feature is one new file and one row.
 *
 * @module
 */
import { sizeOf } from "./weights/bundle.ts";
import { guard, type Guarded } from "./kit/guard.ts";
import { type Measure, report } from "./kit/measure.ts";
import { startTime } from "./weights/start_time.ts";
import { weightOf } from "./weights/breakdown.ts";

/** One bundle, and its sizes in kilobytes. */
interface Row {
  readonly what: string;
  /** The file in `bundles/`. */
  readonly bundle: string;
  /** The file whose size is subtracted. Default: none. */
  readonly without?: string;
  /** The size that is wanted. */
  readonly budget: number;
  /** The size that no change may exceed. */
  readonly ceiling: number;
}

const zod = "base/zod.ts";
const honoAndZod = "base/hono_and_zod.ts";
const served = "served.ts";
const sharedByModels = "models/base.ts";

const rows: readonly Row[] = [
  { what: "an agent with one tool, run, beyond Zod", bundle: "run.ts", without: zod, budget: 11, ceiling: 51 },
  {
    what: "served, sessions in memory, beyond Hono and Zod",
    bundle: served,
    without: honoAndZod,
    budget: 17,
    ceiling: 69.9,
  },
  {
    what: "served with everything, beyond Hono and Zod",
    bundle: "everything.ts",
    without: honoAndZod,
    budget: 24,
    ceiling: 81.7,
  },
  {
    what: "served with zod/mini, compared with Zod",
    bundle: "served_mini.ts",
    without: served,
    budget: -12,
    ceiling: -15.35,
  },
  { what: "store", bundle: "features/store.ts", without: served, budget: 3, ceiling: 4.7 },
  { what: "sessions in SQLite", bundle: "features/sqlite.ts", without: served, budget: 6.5, ceiling: 10.45 },
  {
    what: "sessions in Postgres",
    bundle: "features/postgres.ts",
    without: served,
    budget: 6.5,
    ceiling: 10.6,
  },
  { what: "sessions in Redis", bundle: "features/redis.ts", without: served, budget: 7.5, ceiling: 10.9 },
  { what: "sessions in D1", bundle: "features/d1.ts", without: served, budget: 6.5, ceiling: 10 },
  { what: "compaction", bundle: "features/compaction.ts", without: served, budget: 2, ceiling: 2.95 },
  { what: "subagents", bundle: "features/subagents.ts", without: served, budget: 1, ceiling: 2.75 },
  {
    what: "streamed output",
    bundle: "features/streamed_output.ts",
    without: "features/output.ts",
    budget: 2,
    ceiling: 2.05,
  },
  { what: "screen", bundle: "features/screen.ts", without: served, budget: 2, ceiling: 2.15 },
  { what: "provider tools", bundle: "features/provider_tools.ts", without: served, budget: 2.5, ceiling: 2.35 },
  { what: "moderation", bundle: "features/moderation.ts", without: "features/screen.ts", budget: 1.5, ceiling: 1.2 },
  { what: "MCP servers", bundle: "features/mcp.ts", without: served, budget: 70, ceiling: 69.65 },
  { what: "mods", bundle: "features/mods.ts", without: served, budget: 16, ceiling: 20.9 },
  { what: "cache", bundle: "features/cache.ts", without: "features/key_value.ts", budget: 1.5, ceiling: 1.25 },
  { what: "notes", bundle: "features/notes.ts", without: "features/key_value.ts", budget: 1.5, ceiling: 1.4 },
  { what: "memory", bundle: "features/memory.ts", without: "features/key_value.ts", budget: 3, ceiling: 3.35 },
  { what: "plan", bundle: "features/plan.ts", without: served, budget: 1, ceiling: 1.05 },
  { what: "handoff", bundle: "features/handoff.ts", without: served, budget: 1.2, ceiling: 1.2 },
  { what: "claude_hooks", bundle: "features/claude_hooks.ts", without: served, budget: 20, ceiling: 22.9 },
  { what: "copilot_hooks", bundle: "features/copilot_hooks.ts", without: served, budget: 9, ceiling: 10.85 },
  { what: "rpc_hooks", bundle: "features/rpc_hooks.ts", without: served, budget: 12, ceiling: 15 },
  { what: "skills", bundle: "features/skills.ts", without: served, budget: 6, ceiling: 6.35 },
  { what: "tool_search", bundle: "features/tool_search.ts", without: served, budget: 1.2, ceiling: 1.45 },
  { what: "server_metrics", bundle: "features/server_metrics.ts", without: served, budget: 2, ceiling: 1.9 },
  { what: "trace", bundle: "features/trace.ts", without: served, budget: 0.5, ceiling: 2.1 },
  { what: "schedule", bundle: "features/schedule.ts", without: served, budget: 2.5, ceiling: 2.65 },
  { what: "explain", bundle: "features/explain.ts", without: served, budget: 0.5, ceiling: 0.4 },
  { what: "resume tokens", bundle: "features/resume_tokens.ts", without: served, budget: 2, ceiling: 1.9 },
  { what: "approval links", bundle: "features/approval_links.ts", without: served, budget: 4.5, ceiling: 4.75 },
  { what: "wire: AI SDK UI", bundle: "wires/ai_sdk.ts", without: served, budget: 3, ceiling: 3.8 },
  { what: "wire: AI SDK UI messages", bundle: "wires/ai_sdk_messages.ts", without: served, budget: 3, ceiling: 1.95 },
  { what: "wire: chat completions", bundle: "wires/chat_completions.ts", without: served, budget: 3.5, ceiling: 6.45 },
  { what: "wire: Responses API", bundle: "wires/responses.ts", without: served, budget: 3, ceiling: 7.15 },
  { what: "wire: MCP", bundle: "wires/mcp.ts", without: served, budget: 5, ceiling: 4.7 },
  { what: "wire: AG-UI", bundle: "wires/ag_ui.ts", without: served, budget: 3, ceiling: 4 },
  { what: "model: chat completions", bundle: "models/openai.ts", without: sharedByModels, budget: 4.7, ceiling: 4.8 },
  {
    what: "model: Responses API",
    bundle: "models/openai_responses.ts",
    without: sharedByModels,
    budget: 4.6,
    ceiling: 5.5,
  },
  { what: "model: messages API", bundle: "models/anthropic.ts", without: sharedByModels, budget: 4.2, ceiling: 4.9 },
  { what: "model: Gemini API", bundle: "models/gemini.ts", without: sharedByModels, budget: 3.95, ceiling: 4.05 },
  { what: "client", bundle: "client.ts", budget: 2, ceiling: 3.2 },
];

const names = Deno.args.filter((name) => name !== "files");
if (names[0] === "guard") guard(await sizes(), "tests/bench/size.ts");
else if (names.length === 0) report([...await sizes(), await start()]);
else console.log((await weights(Deno.args.includes("files") ? "files" : "folders")).join("\n\n"));

/** Breaks down the bundles that were named. */
async function weights(detail: "files" | "folders"): Promise<readonly string[]> {
  const chosen = names.map((name) => rows.find(({ bundle }) => bundle === name) ?? unknown(name));
  return await Promise.all(chosen.map(({ bundle, without }) => weightOf(bundle, without, detail)));
}

function unknown(name: string): never {
  const expected = rows.map(({ bundle }) => bundle).join(", ");
  throw new TypeError(`Cannot weigh "${name}": expected some of ${expected}`);
}

/** Measures each row. */
async function sizes(): Promise<readonly Guarded[]> {
  const measures: Guarded[] = [];
  for (const { what, bundle, without, budget, ceiling } of rows) {
    const figure = await sizeOf(bundle) - (without === undefined ? 0 : await sizeOf(without));
    measures.push({ what, figure, atMost: budget, ceiling, unit: "KB" });
  }
  return measures;
}

async function start(): Promise<Measure> {
  const figure = await startTime(served, honoAndZod);
  return { what: "start, beyond Hono and Zod", figure, atMost: 10, unit: "ms" };
}
