/**
 * What guards say of a call of another system.
 *
 * @module
 */
import { type Approval, deny, isInterrupt, type ToolContext } from "../../../mod.ts";
import type { Onions } from "./onions.ts";
import type { OnError } from "./runs.ts";

/** What guards say over `beneath`, which is what the other system says. One that fails denies; what ends or pauses the run passes. */
export async function judge(onions: Onions, call: ToolContext, beneath: Approval, onError: OnError): Promise<Approval> {
  const { batchId: _, index: __, resumed: ___, ...ctx } = call;
  try {
    return await onions.approval(ctx, () => Promise.resolve(beneath));
  } catch (error) {
    if (isInterrupt(error)) throw error;
    onError(error);
    return deny("A guard failed.");
  }
}
