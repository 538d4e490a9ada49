/**
 * Deltas of chat completions: reasoning, text and calls in the forms of servers.
 *
 * @module
 */
import type { Chance } from "../../support/seeded.ts";
import { type Block, type CallBlock, inputText, piecesOf } from "./canonical.ts";
import type { ChatForm } from "./chat_completions.ts";

/** A delta of a choice. */
export type Delta = Readonly<Record<string, unknown>>;

/** A block of reasoning. */
type Reasoning = Extract<Block, { readonly type: "reasoning" }>;

/** Returns the item that a client sends back, after it has joined its pieces. */
export function reasoningItem({ text, signature }: Reasoning, index: number, { reasoning }: ChatForm): object {
  const signed = signature !== undefined && { signature };
  if (reasoning.includes("thinking_blocks")) return { type: "thinking", thinking: text, ...signed };
  if (reasoning.startsWith("encrypted")) {
    return { type: "reasoning.encrypted", data: signature, id: `r${index}`, index };
  }
  const format = "vendor-v1";
  if (signature === undefined) return { type: "reasoning.summary", summary: text, format, index };
  return { type: "reasoning.text", text, format, index, ...signed };
}

/** Returns the deltas of a block of reasoning. */
export function reasoningDeltas(block: Reasoning, index: number, form: ChatForm, chance: Chance): readonly Delta[] {
  const { reasoning } = form;
  const pieces = piecesOf(block.text, chance);
  const item = reasoningItem(block, index, form);
  switch (reasoning) {
    case "reasoning_content":
    case "reasoning":
      return pieces.map((text) => ({ [reasoning]: text }));
    case "parts of content":
      return pieces.map((text) => ({
        content: [{ type: "thinking", thinking: chance.one<unknown>([[{ type: "text", text }], [text], text]) }],
      }));
    case "encrypted reasoning_details":
      return [{ reasoning_details: [item] }];
    case "reasoning_details":
    case "reasoning and reasoning_details":
      return itemPieces(block, item, pieces).map(([text, piece]) => ({
        ...(reasoning !== "reasoning_details" && { reasoning: text }),
        reasoning_details: [piece],
      }));
    case "thinking_blocks":
    case "reasoning_content and thinking_blocks": {
      const begun = pieces.map((text) => [text, { type: "thinking", thinking: text, signature: "" }] as const);
      return [...begun, ["", item] as const].map(([text, piece]) => ({
        ...(reasoning !== "thinking_blocks" && { reasoning_content: text }),
        thinking_blocks: [piece],
      }));
    }
  }
}

/** Splits an item: its text in pieces, and its signature at the end. */
function itemPieces({ signature }: Reasoning, item: object, pieces: readonly string[]) {
  const { text: _, summary, ...rest } = { text: "", summary: undefined, signature: undefined, ...item };
  const name = summary === undefined ? "text" : "summary";
  const split = pieces.map((text) => [text, { ...rest, signature: null, [name]: text }] as const);
  return signature === undefined
    ? split.map(([text, { signature: _, ...piece }]) => [text, piece] as const)
    : [...split, ["", rest] as const];
}

/** Returns the deltas of a text. */
export function textDeltas(text: string, isRefusal: boolean, form: ChatForm, chance: Chance): readonly Delta[] {
  return piecesOf(text, chance).map((piece, index) => {
    if (isRefusal) {
      return form.content === "a string" ? { refusal: piece } : { content: [{ type: "refusal", refusal: piece }] };
    }
    const unknown = form.content === "parts of unknown types" && index === 0
      ? [{ type: "reference", reference_ids: [1] }]
      : [];
    return { content: form.content === "a string" ? piece : [...unknown, { type: "text", text: piece }] };
  });
}

/** Returns the pieces of all calls, for one delta each. */
export function callPieces(
  calls: readonly CallBlock[],
  form: ChatForm,
  chance: Chance,
): readonly (readonly object[])[] {
  const pieces = calls.map((call, at) => piecesOfCall(call, at, form, chance));
  return form.calls === "all in one delta"
    ? [pieces.flat()].filter((all) => all.length > 0)
    : pieces.flat().map((piece) => [piece]);
}

function piecesOfCall(call: CallBlock, at: number, form: ChatForm, chance: Chance): readonly object[] {
  const inputs = inputsOf(call, form, chance);
  const half = Math.ceil(call.name.length / 2);
  const late = chance.below(inputs.length);
  return inputs.map((input, nth) => {
    const isFirst = nth === 0;
    const names = {
      "at the start": isFirst ? call.name : undefined,
      "in a later chunk": nth === late ? call.name : chance.one([null, "", undefined]),
      "in each delta": call.name,
      "in pieces": isFirst ? call.name.slice(0, half) : undefined,
    };
    const name = names[form.name];
    return {
      ...indexOf(at, form),
      ...idOf(at, nth, form),
      ...(isFirst && { type: "function" }),
      ...(isFirst && form.extra === "calls" && { extra_content: extraOf(at) }),
      function: { ...(name !== undefined && { name }), arguments: input },
    };
  }).flatMap((piece, nth) =>
    form.name === "in pieces" && nth === 0
      ? [piece, { ...indexOf(at, form), function: { name: call.name.slice(half), arguments: "" } }]
      : [piece]
  );
}

/** Returns the inputs of the deltas of a call. The first is empty if there are several. */
function inputsOf(call: CallBlock, form: ChatForm, chance: Chance): readonly unknown[] {
  const text = inputText(call, chance);
  const isEmpty = !call.isCut && Object.keys(call.input).length === 0;
  switch (form.arguments) {
    case "in pieces":
      return ["", ...piecesOf(text, chance)];
    case "all so far in each piece": {
      const pieces = piecesOf(text, chance);
      return ["", ...pieces.map((_, at) => pieces.slice(0, at + 1).join(""))];
    }
    case "an object":
      return [call.isCut ? text : call.input];
    case "an empty text for no input":
      return [isEmpty ? "" : text];
    case "an empty list for no input":
      return [isEmpty ? [] : text];
    case "a text":
      return [text];
  }
}

function indexOf(at: number, { index }: ChatForm): object {
  const indexes = {
    counted: { index: at },
    "from 1": { index: at + 1 },
    missing: {},
    zero: { index: 0 },
    null: { index: null },
  };
  return indexes[index];
}

function idOf(at: number, nth: number, { id }: ChatForm): object {
  const ids = {
    given: nth === 0 ? { id: `call_${at}` } : {},
    missing: {},
    empty: { id: "" },
    numeric: nth === 0 ? { id: 7 + at } : {},
    "new in each delta": { id: `call_${at}_${nth}` },
    "in each delta": { id: `call_${at}` },
    "the same for all": nth === 0 ? { id: "call" } : {},
  };
  return ids[id];
}

/** Returns a call, or only its input, as a whole. */
export function wholeCall({ name, input }: CallBlock, at: number, form: ChatForm): object {
  const text = JSON.stringify(input, null, at);
  return {
    ...indexOf(at, form),
    ...idOf(at, 0, form),
    type: "function",
    function: form.repeated === "each input" ? { arguments: text } : { name, arguments: text },
  };
}

/** Returns further data of a call or of an answer. */
export function extraOf(of: number | string): object {
  return { google: { thought_signature: `sig ${of}` } };
}
