/**
 * Handing over what tools made for the person.
 *
 * @module
 */
import {
  type Artifact,
  type ContentPart,
  failed,
  isInterrupt,
  type Middleware,
  type Scope,
  type ToolContext,
  ToolError,
  type ToolResult,
} from "../../mod.ts";
import { reviewIf } from "../../src/core/kit.ts";

/** What is handed over. */
export interface Delivery {
  /** The call that made it. */
  readonly callId: string;
  /** The tool. */
  readonly tool: string;
  /** Text and media. */
  readonly parts: readonly ContentPart[];
  /** What is kept elsewhere. */
  readonly artifacts: readonly Artifact[];
}

/**
 * Hands over every result that says `handled` and is ok: `deliver` takes it to the person, by mail, in a chat, or wherever they are. What was handed over
 * needs no word of the model any more, and where that holds for every result of a batch, the model is not asked again. Where `deliver` throws, the model
 * is told of it: by the message of a `ToolError`, else only that it failed.
 *
 * ```ts
 * import { agent, text, tool } from "@jizai/jizai";
 * import { delivery } from "@jizai/jizai/middleware/delivery";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const chart = tool({
 *   name: "chart",
 *   description: "Draws a chart for the person",
 *   input: z.object({}),
 *   execute: () => ({ ...text([{ type: "media", mediaType: "image/png", data: "iVBORw0KGgo=" }]), handled: true }),
 * });
 * const sent: string[] = [];
 * const assistant = agent({
 *   model: scripted({ calls: [["chart", {}]] }),
 *   tools: [chart],
 *   use: [delivery(({ tool }) => {
 *     sent.push(tool);
 *   })],
 * });
 * const { status } = await assistant.run("Draw it").result;
 * assertEquals([status, sent], ["done", ["chart"]]);
 * ```
 */
export function delivery<V = unknown>(
  deliver: (delivery: Delivery, scope: Scope<V>) => void | Promise<void>,
): Middleware<V> {
  async function handOver(ctx: ToolContext<V>, result: ToolResult): Promise<ToolResult> {
    const { parts, artifacts = [], input } = result;
    try {
      await deliver({ callId: ctx.call.id, tool: ctx.name, parts, artifacts }, ctx);
      return result;
    } catch (error) {
      if (isInterrupt(error)) throw error;
      ctx.run.report(error);
      const why = error instanceof ToolError ? `: ${error.message}` : ".";
      return { ...failed(`What ${ctx.name} made could not be delivered${why}`), input };
    }
  }

  return {
    name: "delivery",
    tool: reviewIf(({ handled, status }) => handled === true && status === "ok", handOver),
  };
}
