/**
 * The decision about the provider-run tools of a request, before it is sent.
 *
 * @module
 */
import type { ToolDefinition } from "../../../model/model.ts";
import { approve } from "../../calls/approval.ts";
import { Pause } from "../../hooks/interrupt.ts";
import type { Approval } from "../../hooks/points/call.ts";
import type { ModelContext } from "../../hooks/points/turn.ts";
import { ask } from "../../hooks/results.ts";
import { state } from "../../hooks/state.ts";
import { engineOf } from "../../run/run.ts";

/** The names of the tools whose removal the run was warned of. */
const warned = /* @__PURE__ */ state<readonly string[]>("provider_tools.removed", () => []);

/** Returns the context with a request that contains only the tools that the guards allow, or that the provider asks about. */
export async function decideTools(ctx: ModelContext): Promise<ModelContext> {
  const { request, request: { model } } = ctx;
  const { definition: { use }, settings: { toolsByName } } = engineOf(ctx.run);
  const isGuarded = use.some(({ approval }) => approval !== undefined);
  const tools: ToolDefinition[] = [];
  for (const definition of request.tools) {
    const { name, provider } = definition;
    if (!provider) tools.push(definition);
    else if (model.asks?.includes(provider.type)) {
      const ask = isGuarded || toolsByName.get(name)?.ask === true;
      tools.push({ ...definition, provider: { ...provider, ask } });
    } else if (await isAllowed(ctx, definition)) tools.push(definition);
  }
  return tools.length === request.tools.length && tools.every((tool, index) => tool === request.tools[index])
    ? ctx
    : { ...ctx, request: { ...request, tools } };
}

/** Whether the guards allow a tool as it is declared. Warns once per run if they do not. */
async function isAllowed(ctx: ModelContext, { name, provider }: ToolDefinition): Promise<boolean> {
  const { run, signal, emit, vars, turn } = ctx;
  const engine = engineOf(run);
  const input = provider?.settings ?? {};
  const call = { id: name, name, input };
  const tool = engine.settings.toolsByName.get(name);
  const about = { run, signal, emit, vars, turn, call, name, input, parsed: input, unparsed: input, tool };
  const deciding = { engine, parsed: { input, json: input }, guards: new Map() };
  const approval = await approve(about, deciding).catch((error): Approval => {
    if (error instanceof Pause) return ask("A hook paused the call.");
    throw error;
  });
  if (approval.type === "allow" && approval.input === undefined) return true;
  const known = warned.get(ctx);
  if (known.includes(name)) return false;
  warned.set(ctx, [...known, name]);
  const reasons = {
    allow: "a guard changed its settings",
    ask: `it needs the approval of a person, and ${ctx.request.model.id} cannot ask before it runs`,
    deny: `a guard denied it${approval.type === "deny" ? `: ${approval.reason}` : ""}`,
  };
  engine.events.warn("tool.removed", `The tool ${name} was removed from the request: ${reasons[approval.type]}`, {
    point: "approval",
  });
  return false;
}
