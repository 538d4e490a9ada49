/**
 * Approval: may a call run? A deny is final, an ask can be answered by whoever saw it, and no allow hides what lies beneath.
 *
 * @module
 */
import { deny } from "./answers.ts";
import { canonicalJson } from "./canonical.ts";
import type { Entry } from "./entry.ts";
import { isInterrupt } from "./interrupt.ts";
import { lawOf } from "./law.ts";
import type { Law, Layer } from "./onion.ts";
import type { Approval, ApprovalContext } from "./points.ts";
import type { Change } from "./scope.ts";

const rank = { allow: 0, ask: 1, deny: 2 } as const;

/** The law of `approval`. */
export const approvalLaw: Law<ApprovalContext, Change, Approval, Entry> = lawOf("approval", [], { seal });

function seal(
  layer: Layer<ApprovalContext, Approval, Entry>,
): Approval | Promise<Approval> {
  const { name, returned, called, below, rest } = layer;
  if (!(returned.type in rank)) {
    throw new TypeError(`Cannot leave approval: "${name}" returned no allow(), ask() or deny()`);
  }
  if (returned.type === "deny") return returned;
  if (called) return below ? over(layer, below) : deny("A guard failed.");
  return rest().then((beneath) => over(layer, beneath)); // the engine looks where the hook did not
}

/** What a hook's answer comes to over what lies beneath it. */
function over({ ctx, returned, called }: Layer<ApprovalContext, Approval, Entry>, beneath: Approval): Approval {
  if (beneath.type === "deny" || edits(beneath, ctx)) return beneath; // an edit goes first: everyone is asked about it anew
  if (edits(returned, ctx)) return returned;
  return called ? returned : strictest(returned, beneath); // who looked may answer an ask
}

function edits(approval: Approval, { input }: ApprovalContext): boolean {
  return approval.type === "allow" && approval.input !== undefined &&
    canonicalJson(approval.input) !== canonicalJson(input);
}

function strictest(above: Approval, beneath: Approval): Approval {
  if (above.type === "ask" && beneath.type === "ask") {
    const suggestions = [...above.suggestions ?? [], ...beneath.suggestions ?? []];
    return {
      ...beneath,
      ...above,
      questions: [...above.questions, ...beneath.questions],
      ...(suggestions.length > 0 && { suggestions }),
    };
  }
  return rank[above.type] >= rank[beneath.type] ? above : beneath;
}

/** The core of `approval`: what the tool itself says. */
export async function askTool(ctx: ApprovalContext, { parsed }: Entry): Promise<Approval> {
  const { tool, name } = ctx;
  const asks = typeof tool?.ask === "function"
    ? !parsed || await tool.ask(parsed.input as never, ctx) // parsed by the tool's own schema
    : tool?.ask === true;
  return asks ? { type: "ask", questions: [`Run ${name}?`] } : { type: "allow" };
}

/** Asks everyone. A guard that throws denies; what ends or pauses the run passes. */
export async function approve(ctx: ApprovalContext, entry: Entry): Promise<Approval> {
  try {
    return await entry.live.blueprint.onions.approval(ctx, entry);
  } catch (error) {
    if (isInterrupt(error) || entry.live.aborted) throw error;
    entry.live.events.warn("hook.failed", "A guard failed, so the call was denied.", { point: "approval", error });
    return deny("A guard failed.");
  }
}
