/**
 * Delivers results to the person.
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
  state,
  type ToolContext,
  ToolError,
  type ToolResult,
} from "../../mod.ts";
import { expectNames } from "../../src/core/kit.ts";

/** A result to deliver. */
export interface Delivery {
  /** Id of the call. */
  readonly callId: string;
  /** Name of the tool. */
  readonly tool: string;
  /** Texts and media of the result. */
  readonly parts: readonly ContentPart[];
  /** Links to data that is stored elsewhere. */
  readonly artifacts: readonly Artifact[];
}

/** Options of `delivery()`. */
export interface DeliveryOptions {
  /** Name of the middleware. Two deliveries in one agent need two names. Default: "delivery". */
  readonly name?: string;
}

/** The calls of the latest turn whose results were delivered. */
interface Delivered {
  readonly turn: number;
  /** The ids of the calls. */
  readonly calls: readonly string[];
}

/**
 * Calls `deliver` with every result that is `handled` and ok, to send it to the person by mail, in a chat or elsewhere. If every result of a batch is handled,
 * the model is not asked again. If `deliver` throws, the model reads that the delivery failed: the message of a `ToolError`, or only the fact.
 *
 * A result is delivered once, also if a hook pauses the run afterwards. If the process dies right after a delivery, it is repeated: `callId` stays the same.
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
  options: DeliveryOptions = {},
): Middleware<V> {
  expectNames("Cannot create delivery()", options, ["name"]);
  const { name = "delivery" } = options;
  const delivered = state<Delivered>(`${name}.delivered`, () => ({ turn: 0, calls: [] }));

  async function deliverResult(ctx: ToolContext<V>, result: ToolResult): Promise<ToolResult> {
    const { turn, call: { id: callId } } = ctx;
    const { parts, artifacts = [], input } = result;
    const latest = delivered.get(ctx);
    const calls = latest.turn === turn ? latest.calls : [];
    if (calls.includes(callId)) return result; // a hook outside has paused the run since
    try {
      await deliver({ callId, tool: ctx.name, parts, artifacts }, ctx);
      delivered.set(ctx, { turn, calls: [...calls, callId] });
      return result;
    } catch (error) {
      if (isInterrupt(error)) throw error;
      ctx.run.report(error);
      const why = error instanceof ToolError ? `: ${error.message}` : ".";
      return { ...failed(`The result of ${ctx.name} could not be delivered${why}`), input };
    }
  }

  return {
    name,
    requires: [name], // agent() refuses a second middleware of the name, which would take its deliveries for done
    async tool(ctx, next) {
      const result = await next();
      return result.handled === true && result.status === "ok" ? await deliverResult(ctx, result) : result;
    },
  };
}
