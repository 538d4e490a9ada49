/**
 * The parts of a request that mods compose: the instructions, the descriptions of tools, and the subagents that are offered.
 *
 * @module
 */
import { engineOrigin } from "./frame.ts";
import type { Data } from "./patterns.ts";
import type { At, ModRun } from "./run.ts";
import { objectOf } from "../kit/answers.ts";
import { mcpToolOf } from "../kit/calls.ts";
import type { ModelContext, ModelRequest, ToolDefinition } from "../../../mod.ts";

/** Composes the system prompt: the instructions are one section, which `prompt.section` may replace or drop. */
export async function composeSections(run: ModRun, at: At, facts: Data): Promise<Data> {
  const model = run.model?.id ?? "";
  const e = {
    ...{ model, promptModel: model, surfaces: [], outputStyle: null, traits: ["print"] },
    tools: run.tools.map(({ name }) => name),
    ...facts,
  };
  return await run.raise("prompt.compose", e, async () => {
    const section = { name: "instructions", text: run.instructions };
    const { text } = await run.once(
      "prompt.section",
      run.instructions,
      () => run.raise("prompt.section", section, ({ text }) => Promise.resolve({ text }), at),
    );
    const composed = typeof text === "string" && text !== "" ? [{ id: "instructions", text, scope: "session" }] : [];
    return { sections: composed };
  }, at);
}

/** Returns the instructions of sections: those that sessions share come first. */
function joined({ sections }: Data): string {
  const all = (Array.isArray(sections) ? sections : []).map(objectOf);
  const inScope = (scope: string) => all.filter((section) => section.scope === scope);
  return [...inScope("shared"), ...inScope("session")].map(({ text }) => String(text)).filter((text) => text !== "")
    .join("\n\n");
}

/** Returns a request with what mods make of its instructions and its tools. */
export async function composedRequest(
  run: ModRun,
  ctx: ModelContext,
  agents: ReadonlySet<string>,
): Promise<ModelRequest> {
  const { request, request: { instructions, tools } } = ctx;
  const at: At = { ctx, point: "model" };
  const changed = run.has("prompt.compose", "prompt.section")
    ? joined(await composeSections(run, at, {}))
    : instructions;
  const offered = run.has("agent.offer") ? await offeredTools(run, at, tools, agents) : tools;
  const described = run.has("tool.describe") ? await describedTools(run, at, offered) : offered;
  const isSame = changed === instructions && described === tools;
  return isSame ? request : { ...request, instructions: changed, tools: described };
}

/** Whether a subagent is offered. Mods are asked once. */
export async function isOffered(run: ModRun, at: At, agent: string, description: string): Promise<boolean> {
  const e = { agent, description, source: "built-in", provider: engineOrigin };
  const core = () => Promise.resolve({ isOffered: true });
  const answer = await run.once("agent.offer", agent, () => run.raise("agent.offer", e, core, at));
  return answer.isOffered === true;
}

async function offeredTools(
  run: ModRun,
  at: At,
  tools: readonly ToolDefinition[],
  agents: ReadonlySet<string>,
): Promise<readonly ToolDefinition[]> {
  const kept: ToolDefinition[] = [];
  for (const tool of tools) {
    if (!agents.has(tool.name) || await isOffered(run, at, tool.name, tool.description)) kept.push(tool);
  }
  return kept.length === tools.length ? tools : kept;
}

async function describedTools(
  run: ModRun,
  at: At,
  tools: readonly ToolDefinition[],
): Promise<readonly ToolDefinition[]> {
  const all: ToolDefinition[] = [];
  for (const tool of tools) all.push(await describedTool(run, at, tool));
  return all.every((tool, index) => tool === tools[index]) ? tools : all;
}

async function describedTool(run: ModRun, at: At, tool: ToolDefinition): Promise<ToolDefinition> {
  const { name, description, deferred = false } = tool;
  const server = mcpToolOf(name)?.serverName;
  const provider = server === undefined ? engineOrigin : { plugin: `mcp:${server}`, tier: "user" };
  const e = { tool: name, description, ...(deferred && { isDeferred: true }), provider };
  const answer = await run.once(
    "tool.describe",
    JSON.stringify([name, description]),
    () =>
      run.raise(
        "tool.describe",
        e,
        ({ description, isDeferred }) =>
          Promise.resolve({ description, ...(isDeferred !== undefined && { isDeferred }) }),
        at,
      ),
  );
  const changed = {
    description: String(answer.description),
    deferred: typeof answer.isDeferred === "boolean" ? answer.isDeferred : deferred,
  };
  const isSame = changed.description === description && changed.deferred === deferred;
  return isSame ? tool : { ...tool, ...changed };
}
