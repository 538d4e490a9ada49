/**
 * Attacks on calls: responses that end anywhere, for any reason, while hooks repair, answer, edit and repeat their calls.
 *
 * @module
 */
import { agent, type FinishReason, type Middleware, type Model, type ModelEvent, text, tool } from "@jizai/jizai";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { openai } from "@jizai/jizai/model/openai";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { respond, sse } from "../support/providers/sse.ts";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

/** A call as the model wrote it before the response ended. */
interface Written {
  readonly text: string;
  /** Whether the text is all of the call. */
  readonly whole: boolean;
}

/** Returns the input of a call. */
function inputOf({ below, one }: Chance): unknown {
  const value = () => one(["", "a", '"}', "{", 0, 12, true, null, [], ["b"], { c: {} }]);
  return Object.fromEntries(Array.from({ length: below(3) }, (_, index) => [`k${index}`, value()]));
}

/** Returns calls, of which the last may end anywhere. */
function callsOf(chance: Chance): readonly Written[] {
  const { below } = chance;
  const texts = Array.from({ length: 1 + below(3) }, () => JSON.stringify(inputOf(chance)));
  const last = texts.length - 1;
  return texts.map((text, index) => {
    const length = index < last || below(3) === 0 ? text.length : below(text.length);
    return { text: text.slice(0, length), whole: length === text.length };
  });
}

/** Streams calls through the port of models. A provider may close a call that the limit has cut, unless it has no input. */
function portOf(chance: Chance, calls: readonly Written[], reason: FinishReason): Model {
  const events = calls.flatMap(({ text, whole }, index): ModelEvent[] => {
    const id = `c${index}`;
    const isClosed = index < calls.length - 1 || (whole ? chance.below(2) > 0 : text !== "" && chance.below(2) > 0);
    return [
      { type: "call.start", id, name: "delete_rows" },
      ...[...text].map((piece): ModelEvent => ({ type: "call.delta", id, text: piece })),
      ...isClosed ? [{ type: "call.end", id } as const] : [],
    ];
  });
  return scripted({ reads: [[...events, { type: "finish", reason }]] }, ...Array.from({ length: 4 }, () => "Done."));
}

/** Streams calls as chat completions. */
function chatOf(calls: readonly Written[], reason: FinishReason): Model {
  const finish_reason = reason === "other" ? "unheard_of" : reason === "length" ? reason : "content_filter";
  const deltas = calls.flatMap(({ text }, index) => [
    { tool_calls: [{ index, id: `c${index}`, function: { name: "delete_rows", arguments: "" } }] },
    ...[...text].map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ]);
  const first = [...deltas.map((delta) => ({ delta })), { delta: {}, finish_reason }];
  return serving(first.map((choice) => ({ choices: [choice] })), [
    { choices: [{ delta: { content: "Done." }, finish_reason: "stop" }] },
  ], (fetch) => openai({ model: "m", apiKey: "key", fetch }));
}

/** Streams calls as messages, whose blocks end also where the limit has cut them. */
function messagesOf(calls: readonly Written[], reason: FinishReason): Model {
  const stop_reason = reason === "length" ? "max_tokens" : reason === "other" ? "unheard_of" : "refusal";
  const blocks = calls.flatMap(({ text }, index) => [
    {
      type: "content_block_start",
      index,
      content_block: { type: "tool_use", id: `c${index}`, name: "delete_rows", input: {} },
    },
    ...[...text].map((piece) => ({
      type: "content_block_delta",
      index,
      delta: { type: "input_json_delta", partial_json: piece },
    })),
    { type: "content_block_stop", index },
  ]);
  const done = [
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "Done." } },
    { type: "message_delta", delta: { stop_reason: "end_turn" } },
  ];
  return serving(
    [...blocks, { type: "message_delta", delta: { stop_reason } }, { type: "message_stop" }],
    done,
    (fetch) => anthropic({ model: "m", apiKey: "key", fetch }),
  );
}

function serving(
  first: readonly Readonly<Record<string, unknown>>[],
  rest: readonly Readonly<Record<string, unknown>>[],
  create: (fetch: () => Response) => Model,
): Model {
  const streams = [sse(first)];
  return create(() => respond(streams.shift() ?? sse(rest))());
}

/** Returns hooks that would like calls to run. */
function hooksOf({ below, one }: Chance): readonly Middleware[] {
  const eager: readonly [Middleware, ...Middleware[]] = [
    { name: "repair", tool: ({ call }, next) => next(call.malformed === undefined ? {} : { input: {} }) },
    { name: "rename", tool: (_, next) => next({ name: "delete_rows" }) },
    { name: "answer", tool: ({ call }, next) => call.incomplete ? Promise.resolve(text("Done.")) : next() },
    { name: "allow", approval: () => Promise.resolve({ type: "allow" }) },
    { name: "again", model: async (_, next) => (await next(), next().catch(() => next())) },
    { name: "copy", model: async (_, next) => structuredClone(await next()) },
    {
      name: "go on",
      stop: ({ continuations }, next) =>
        continuations < 2 ? Promise.resolve({ type: "continue", messages: [] }) : next(),
    },
  ];
  return Array.from({ length: below(4) }, () => one(eager));
}

/** Attacks the rule that only complete calls run, and none of a response that was stopped. */
export const cuts: Attack = {
  name: "cuts",
  async attempt(chance) {
    const calls = callsOf(chance);
    const reason = chance.one<FinishReason>(["length", "length", "other", "filter", "refusal"]);
    const stream = chance.one([
      () => portOf(chance, calls, reason),
      () => chatOf(calls, reason),
      () => messagesOf(calls, reason),
    ]);
    const ran: unknown[] = [];
    const deleteRows = tool({
      name: "delete_rows",
      description: "Deletes rows",
      input: z.record(z.string(), z.unknown()),
      execute: (input) => (ran.push(input), "ok"),
    });
    const use = hooksOf(chance);
    const assistant = agent({ model: stream(), tools: [deleteRows], use });
    const { status } = await assistant.run({ prompt: "Hi", onError: () => {} }).result;
    const isStopped = reason === "filter" || reason === "refusal";
    const allowed = isStopped ? [] : calls.flatMap(({ text, whole }) => whole ? [text] : []);
    const about = () => `${JSON.stringify(calls)}, ${reason}, ${status}: ${JSON.stringify(ran)}`;
    expect(
      ran.every((input) => allowed.includes(JSON.stringify(input))),
      () => `A call ran with another input: ${about()}`,
    );
    const count = use.length > 0 || ran.length === allowed.length; // hooks may ask again, or answer in place of the tool
    expect(count, () => `A complete call did not run: ${about()}`);
    return 1;
  },
};
