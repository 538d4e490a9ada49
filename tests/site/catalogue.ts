/**
 * The catalogue of middleware: a page for each, from its docblock, and from the object that it creates.
 *
 * @module
 */
import { agent, type Middleware } from "@jizai/jizai";
import { points } from "@jizai/jizai/kit";
import { audit } from "@jizai/jizai/middleware/audit";
import { budget } from "@jizai/jizai/middleware/budget";
import { cache } from "@jizai/jizai/middleware/cache";
import { callRate } from "@jizai/jizai/middleware/call_rate";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { command_hooks } from "@jizai/jizai/middleware/command_hooks";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { delivery } from "@jizai/jizai/middleware/delivery";
import { fallback } from "@jizai/jizai/middleware/fallback";
import { handoff } from "@jizai/jizai/middleware/handoff";
import { human } from "@jizai/jizai/middleware/human";
import { inject } from "@jizai/jizai/middleware/inject";
import { instructions } from "@jizai/jizai/middleware/instructions";
import { logger } from "@jizai/jizai/middleware/logger";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { moderation } from "@jizai/jizai/middleware/moderation";
import { mods } from "@jizai/jizai/middleware/mods";
import { notes } from "@jizai/jizai/middleware/notes";
import { optional } from "@jizai/jizai/middleware/optional";
import { otel } from "@jizai/jizai/middleware/otel";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { plan } from "@jizai/jizai/middleware/plan";
import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
import { redact } from "@jizai/jizai/middleware/redact";
import { retry } from "@jizai/jizai/middleware/retry";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { serial } from "@jizai/jizai/middleware/serial";
import { sharedState } from "@jizai/jizai/middleware/shared_state";
import { skills } from "@jizai/jizai/middleware/skills";
import { subagents } from "@jizai/jizai/middleware/subagents";
import { timeout } from "@jizai/jizai/middleware/timeout";
import { toolSearch } from "@jizai/jizai/middleware/tool_search";
import { transcript } from "@jizai/jizai/middleware/transcript";
import { truncate } from "@jizai/jizai/middleware/truncate";
import { verify } from "@jizai/jizai/middleware/verify";
import { within } from "@jizai/jizai/middleware/within";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { yoi_hooks } from "@jizai/jizai/middleware/yoi_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import * as telemetry from "@opentelemetry/api";
import type { Draft } from "./pages.ts";
import { addressOfModule, type DocModule, prose, symbolsText, symbolText } from "./reference.ts";

const keyValue = memoryKeyValue();
const plain: Middleware = { name: "yours" };
const child = agent({ name: "child", model: scripted() });

/** Creates each middleware, by the name of its module. A page of one that is missing here shows neither its points nor its order. */
export const created: Readonly<Record<string, () => object>> = {
  audit: () => audit(() => {}),
  budget: () => budget({ tokens: 1, cost: 1, calls: 1, ms: 1, prices: {} }),
  cache: () => cache({ keyValue, model: true, tools: ["a"] }),
  call_rate: () => callRate({ limit: 1, window: 1 }),
  claude_hooks: () => claude_hooks({}),
  command_hooks: () => command_hooks({ hooks: {} }),
  compaction: () => compaction(),
  copilot_hooks: () => copilot_hooks({}),
  delivery: () => delivery(() => {}),
  fallback: () => fallback([scripted()]),
  handoff: () => handoff([{ name: "a", description: "A", instructions: "A" }]),
  human: () => human(() => true),
  inject: () => inject("A"),
  instructions: () => instructions(memoryFiles({})),
  logger: () => logger(() => {}),
  mcp: () => mcp({ servers: {} }),
  moderation: () => moderation({ moderator: { moderate: () => Promise.resolve({ flagged: false, categories: [] }) } }),
  mods: () => mods([]),
  notes: () => notes({ keyValue }),
  optional: () => optional(plain),
  otel: () => otel(telemetry),
  permissions: () => permissions({}),
  plan: () => plan(),
  rate_limit: () => rateLimit({ per: () => "a", limit: 1, window: 1 }),
  redact: () => redact(),
  retry: () => retry(),
  rpc_hooks: () => rpc_hooks({}),
  serial: () => serial("a"),
  shared_state: () => sharedState({}),
  skills: () => skills([]),
  subagents: () => subagents([child]),
  timeout: () => timeout({ model: 1, execute: 1 }),
  tool_search: () => toolSearch(),
  transcript: () => transcript({ dir: "." }),
  truncate: () => truncate(),
  verify: () => verify(() => undefined),
  within: () => within(1, plain),
  workspace: () => workspace(memoryFiles({})),
  yoi_hooks: () => yoi_hooks({}),
};

/** Returns true for the module of a middleware, or of a part of one, such as `middleware/mcp/stdio`. */
export const isMiddlewareModule = ({ name }: DocModule): boolean => name.includes("/middleware/");

/** Returns the page of a middleware. `kilobytes` is what it adds to a bundle, compressed. */
export function cataloguePage(module: DocModule, kilobytes: number): Draft {
  const { name, file, doc } = module;
  const id = name.slice("@jizai/jizai/middleware/".length);
  const factory = module.symbols.find((symbol) => symbol.name === id || symbol.name === camelCase(id));
  const made: Partial<Middleware> | undefined = created[id]?.();
  const names = new Set(module.symbols.map((symbol) => symbol.name));
  const [option] = module.symbols.filter((symbol) => /Options$/.test(symbol.name));
  const facts = [
    `| Import | \`import { ${factory?.name ?? module.symbols[0]?.name} } from "${name}"\` |`,
    "| --- | --- |",
    ...(made ? [`| Points | ${pointsOf(made)} |`, `| Order | ${orderOf(made)} |`] : []),
    ...(made?.tools?.length ? [`| Tools | ${made.tools.map((tool) => `\`${tool.name}\``).join(", ")} |`] : []),
    ...(option ? [`| Options | [\`${option.name}\`](#${option.name}) |`] : []),
    `| Cost | ${kilobytes.toFixed(1)} KB in a bundle, minified and compressed |`,
  ];
  const markdown = [
    `# ${factory ? `${factory.name}()` : id} {#page}`,
    prose(doc),
    facts.join("\n"),
    ...(factory ? [symbolText(factory, names)] : []),
    symbolsText(module, factory ? [factory.name] : []),
    "[All middleware, and an order that fits all](/middleware/README.md)",
  ].join("\n\n");
  const description = doc.split("\n\n")[0]?.replace(/\s+/g, " ").trim() ?? "";
  return { source: file, path: addressOfModule(name), title: id, description, markdown };
}

function camelCase(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the points at which a middleware has hooks, each with a link. */
function pointsOf(made: Partial<Middleware>): string {
  const hooked = points.filter((point) => typeof made[point] === "function");
  const links = hooked.map((point) => `[\`${point}\`](/examples/guides/concepts/onion.md#${point})`);
  return links.length > 0 ? links.join(", ") : "those of the middleware that it is given, or of its configuration";
}

/** Returns the order that a middleware declares. `agent()` throws if `use` breaks it. */
function orderOf({ after = [], before = [], requires = [], inherit }: Partial<Middleware>): string {
  const link = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(", ");
  const rules = [
    after.length > 0 && `after ${link(after)}`,
    before.length > 0 && `before ${link(before)}`,
    requires.length > 0 && `requires ${link(requires)}`,
    inherit === true && "subagents inherit it",
    inherit === false && "subagents do not inherit it",
  ].filter(Boolean);
  return rules.length > 0 ? rules.join("; ") : "declares none: see below, and the order that fits all";
}
