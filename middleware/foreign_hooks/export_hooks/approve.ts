/**
 * Approval of calls of another system.
 *
 * @module
 */
import { type Approval, deny, isInterrupt, type ToolContext } from "../../../mod.ts";
import type { Onions } from "./onions.ts";
import type { OnError } from "./runs.ts";

/** Asks the guards about a call. `inner` is the verdict of the other system. A guard that fails denies; an end or a pause of the run is thrown. */
export async function approve(onions: Onions, call: ToolContext, inner: Approval, onError: OnError): Promise<Approval> {
  const { batchId: _, index: __, resumed: ___, ...ctx } = call;
  try {
    return await onions.approval({ ...ctx, parsed: ctx.input, unparsed: ctx.input }, () => Promise.resolve(inner));
  } catch (error) {
    if (isInterrupt(error)) throw error;
    onError(error);
    return deny("A guard failed.");
  }
}
