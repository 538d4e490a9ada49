/**
 * Groups of calls: the calls of one response that overlap. A group ends before the next one begins.
 *
 * @module
 */
import type { Call } from "../../protocol/part.ts";
import type { AnyTool } from "../agent/tool.ts";
import type { GroupContext } from "../hooks/middleware.ts";
import type { CallRecord, PositionAt } from "../run/position.ts";
import type { StepScope } from "../run/run.ts";

/** The part of a context that names the call. */
type GroupedCall = Pick<GroupContext, "call" | "tool" | "name" | "turn">;

/** The index and the record of a call. */
export type CallEntry = readonly [index: number, record: CallRecord];

/** Splits a batch at the calls that must run alone. Returns the calls without a result. */
export async function groupsOf(
  scope: StepScope,
  { turn, calls }: PositionAt<"tools">,
): Promise<readonly CallEntry[][]> {
  const { settings: { toolsByName }, definition: { groups: requests } } = scope.engine;
  const groups: CallEntry[][] = [];
  let isOpen = false;
  for (const entry of calls.entries()) { // also of finished calls: a resumed batch has the same groups
    const [, { call, state }] = entry;
    const tool = toolsByName.get(call.name);
    const mayBeAlone = requests.length > 0 || tool?.parallel !== undefined;
    const alone = mayBeAlone && await mustBeAlone(scope, { call, tool, name: call.name, turn });
    const last = groups.at(-1);
    const group = isOpen && !alone && last ? last : [];
    if (group !== last) groups.push(group);
    isOpen = !alone;
    if (state !== "done") group.push(entry);
  }
  return groups.filter((group) => group.length > 0);
}

/** Returns true if the tool or a middleware requests a group of its own for a call, or if a middleware's function throws. */
async function mustBeAlone({ engine, run, signal, emit, vars }: StepScope, of: GroupedCall): Promise<boolean> {
  try {
    const parallel = await isParallel(of.tool, of.call);
    const ctx: GroupContext = { run, signal, emit, vars, ...of, parallel };
    if (parallel === false) return true;
    for (const group of engine.definition.groups) if (await group(ctx) === "alone") return true;
    return false;
  } catch (error) {
    engine.events.report(error);
    return true;
  }
}

/** Returns true or false if a tool says whether a call may overlap with others; undefined if it does not. */
async function isParallel(tool: AnyTool | undefined, { input }: Call): Promise<boolean | undefined> {
  if (typeof tool?.parallel !== "function") return tool?.parallel ?? (tool?.readOnly ? true : undefined);
  const validated = await tool.input["~standard"].validate(input);
  return !validated.issues && await tool.parallel(validated.value as never); // parsed by the tool's own schema
}
