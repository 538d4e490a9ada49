/**
 * The point `model`: `turn.step`, whose hooks receive the response as it streams. What leaves the outermost hook is shown and recorded.
 *
 * @module
 */
import { composedRequest } from "./instructions.ts";
import type { Data } from "./patterns.ts";
import type { At, ModRun, ModRuns } from "./run.ts";
import { Incoming, Outgoing, stopReasons } from "./response.ts";
import { appendedText, loopOf, modelOf, usageOf } from "./session_view.ts";
import type { Chunks } from "./stream.ts";
import {
  callsOf,
  mapText,
  type Middleware,
  type ModelChange,
  type ModelContext,
  type ModelOptions,
  type ModelRequest,
  type ModelResponse,
  type Next,
  textOf,
} from "../../../mod.ts";
import { anySignal } from "../../../src/core/kit.ts";

/** The names of the subagent tools of a run. */
export type AgentNames = (ctx: ModelContext) => ReadonlySet<string>;

/** Creates the hook at `model`. */
export function stepHook(runs: ModRuns, agents: AgentNames): Pick<Middleware, "model"> {
  return {
    async model(ctx, next) {
      const run = await runs.of(ctx);
      if (ctx.purpose === "summary") return await next();
      const { model, tools, instructions } = ctx.request;
      Object.assign(run, { model, tools, instructions });
      const request = await composedRequest(run, ctx, agents(ctx));
      run.messages = request.messages;
      const streamed =
        await (run.has("turn.step")
          ? step(run, { ...ctx, request }, next)
          : next(request === ctx.request ? undefined : { request }));
      const response = await appendedResponse(run, ctx, streamed);
      run.messages = [...request.messages, { role: "assistant", parts: response.parts }];
      return response;
    },
  };
}

/** Returns the response as `session.append` leaves it. */
async function appendedResponse(run: ModRun, ctx: ModelContext, response: ModelResponse): Promise<ModelResponse> {
  const content = response.parts.flatMap((part): Data[] => {
    if (part.type === "text") return [{ type: "text", text: part.text }];
    return part.type === "call" ? [{ type: "tool_use", id: part.id, name: part.name, input: part.input }] : [];
  });
  const message = { type: "assistant", role: "assistant", content };
  const texts = [...await appendedText(run, { ctx, point: "model" }, "response", message)];
  return texts.length === 0 ? response : mapText(response, (text) => texts.shift() ?? text);
}

/** The efforts of both systems. */
const efforts: readonly unknown[] = ["low", "medium", "high", "xhigh", "max"] satisfies ModelOptions["effort"][];

/** Returns the change of a request that a step asks for. Throws a `TypeError` for a model that is not known. */
function changeOf(run: ModRun, { request }: ModelContext, { model: id, effort }: Data): Partial<ModelRequest> {
  const { model, options } = request;
  const chosen = id === model.id ? model : modelOf(run, id);
  if (!chosen) throw new TypeError(`there is no model "${id}"; expected one that the option models returns`);
  const isKnown = efforts.includes(effort);
  if (effort !== undefined && !isKnown && effort !== options.effort) {
    throw new TypeError(`there is no effort "${effort}"`);
  }
  return {
    ...request,
    ...(chosen !== model && { model: chosen }),
    ...(isKnown && effort !== options.effort && { options: { ...options, effort: effort as ModelOptions["effort"] } }), // it was found
  } as Partial<ModelRequest>;
}

async function step(run: ModRun, ctx: ModelContext, next: Next<ModelChange, ModelResponse>): Promise<ModelResponse> {
  const { request, turn } = ctx;
  const at: At = { ctx, point: "model", expect: (e) => void changeOf(run, ctx, e) };
  const outgoing = new Outgoing(ctx);
  const requests: Incoming[] = [];
  let failure: { readonly error: unknown } | undefined;
  const place = { turnId: ctx.run.id, index: turn - 1 };
  const e = {
    ...place,
    model: request.model.id,
    ...(request.options.effort !== undefined && { effort: request.options.effort }),
    messageCount: request.messages.length,
    ...loopOf(ctx.run),
  };

  async function* core(e: Data, signal: AbortSignal): Chunks {
    const change = changeOf(run, ctx, e);
    const abandoned = new AbortController();
    const incoming = new Incoming(ctx, outgoing);
    requests.push(incoming);
    const asked = next({
      request: change,
      emit: (event) => incoming.emit(event),
      signal: anySignal([ctx.signal, signal, abandoned.signal]),
    });
    asked.then((response) => incoming.end(response), (error) => incoming.fail(error));
    try {
      for await (const chunk of incoming.chunks()) yield chunk;
      const response = await asked;
      return {
        ...place,
        answer: textOf(response),
        toolUses: callsOf(response).map(({ name, input }) => ({ name, input })),
        stopReason: stopReasons[response.finish],
        usage: usageOf(response.usage, response.model),
      };
    } catch (error) {
      failure = { error };
      throw error;
    } finally {
      abandoned.abort(new DOMException("A hook has abandoned the response.", "AbortError"));
      await asked.catch(() => {}); // `failure`, or the hook that abandoned it
    }
  }

  const chunks = run.stream("turn.step", e, core, at);
  for await (const chunk of chunks) outgoing.add(chunk);
  if (failure && ctx.signal.aborted) throw failure.error;
  return outgoing.end(requests, request.model.id);
}
