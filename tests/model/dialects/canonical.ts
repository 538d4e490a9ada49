/**
 * Canonical responses: the content of a response before a server writes it in the form of its API.
 *
 * @module
 */
import type { FinishReason, Json, Usage } from "@jizai/jizai";
import type { Chance } from "../../support/seeded.ts";

/** A piece of content that the model wrote, in order. */
export type Block =
  | { readonly type: "reasoning"; readonly text: string; readonly signature?: string }
  | { readonly type: "text"; readonly text: string }
  | CallBlock;

/** A call. */
export interface CallBlock {
  readonly type: "call";
  readonly name: string;
  readonly input: CallInput;
  /** Whether the response was cut within the input. It is the last call of its response. Default: false. */
  readonly isCut?: boolean;
}

/** The input of a call. */
export type CallInput = { readonly [name: string]: Json };

/** A page that the answer cites. */
export interface Source {
  readonly url: string;
  /** The title. Undefined if the form has none. */
  readonly title: string | undefined;
}

/** A file that the model generated. */
export interface File {
  readonly mediaType: string;
  readonly data: string;
}

/** A failure within the stream. */
export interface Failure {
  /** The place: before the first frame, among the frames, or in place of the last ones. */
  readonly at: "start" | "middle" | "end";
  readonly message: string;
  /** Whether the server says that the same request may succeed later. */
  readonly recoverable: boolean;
}

/** The content of a response. */
export interface CanonicalResponse {
  readonly blocks: readonly Block[];
  readonly sources: readonly Source[];
  readonly files: readonly File[];
  /** A refusal, which no text accompanies. */
  readonly refusal?: string;
  readonly finish: FinishReason;
  /** The counts. `input` and `output` include the others. */
  readonly usage?: Usage;
  readonly failure?: Failure;
}

/** The names of the tools that the model may call. */
export const toolNames = ["weather", "search"] as const;

const words = [
  "It ",
  "is ",
  "sunny",
  " in 京都",
  ", ",
  "🪝",
  '"so"',
  "\\n",
  "\n\n",
  "e\u0301",
  "\u2028",
  "<b>",
  "data: ",
] as const;

/** Returns a text of one word or more. */
export function randomText({ below, one }: Chance): string {
  return Array.from({ length: 1 + below(6) }, () => one(words)).join("");
}

function randomJson(chance: Chance, depth: number): Json {
  const { below, one } = chance;
  const several = <T>(make: () => T) => Array.from({ length: below(3) }, make);
  return one<() => Json>([
    () => randomText(chance),
    () => one([0, -1.5, 1e21, true, false, null, ""]),
    () => depth === 0 ? "" : several(() => randomJson(chance, depth - 1)),
    () => depth === 0 ? "" : randomInput(chance, depth - 1),
  ])();
}

/** Returns an object that nests values up to `depth` levels. */
function randomInput(chance: Chance, depth: number): CallInput {
  const names = ["city", "京都", "a.b", "__type", 'q"', "items"] as const;
  const entries = Array.from(
    { length: chance.below(4) },
    () => [chance.one(names), randomJson(chance, depth)] as const,
  );
  return Object.fromEntries(entries);
}

/** Creates the response that `chance` determines. */
export function randomResponse(chance: Chance): CanonicalResponse {
  const { below, one } = chance;
  const maybe = <T>(share: number, make: () => T): T[] => below(100) < share ? [make()] : [];
  const refusal = maybe(10, () => randomText(chance))[0];
  const reasoning = (): Block => {
    const [signature] = maybe(60, () => `sig+/${below(1_000_000)}==`);
    return { type: "reasoning", text: randomText(chance), ...(signature !== undefined && { signature }) };
  };
  const call = (): Block => ({ type: "call", name: one(toolNames), input: randomInput(chance, 3) });
  const blocks = [
    ...maybe(60, reasoning),
    ...maybe(70, (): Block => ({ type: "text", text: randomText(chance) })),
    ...maybe(20, reasoning),
    ...Array.from({ length: one([0, 0, 1, 2, 3, 4]) }, call),
  ];
  const written = blocks.map((block) => JSON.stringify(block));
  blocks.splice(0, blocks.length, ...blocks.filter((_, at) => written.indexOf(written[at]!) === at)); // some servers repeat calls
  const [last] = blocks.slice(-1);
  const cut = last?.type === "call" ? maybe(10, () => one<FinishReason>(["length", "filter", "other"]))[0] : undefined;
  if (last?.type === "call" && cut) blocks.splice(-1, 1, { ...last, isCut: true });
  const kept = refusal === undefined ? blocks : blocks.filter(({ type }) => type === "reasoning");
  const calls = kept.some(({ type }) => type === "call");
  const [usage] = maybe(80, () => randomUsage(chance));
  const [failure] = maybe(12, (): Failure => ({
    at: one(["start", "middle", "end"]),
    message: `No capacity ${below(1_000)}`,
    recoverable: below(2) === 0,
  }));
  return {
    blocks: kept.length > 0 || refusal !== undefined ? kept : [{ type: "text", text: "Hi" }],
    sources: maybe(20, () => ({ url: `https://example.com/${below(9)}?q=京`, title: randomText(chance) })),
    files: maybe(
      15,
      () => ({ mediaType: "image/png", data: btoa(randomText({ below, one: () => "bytes" as never })) }),
    ),
    ...(refusal !== undefined && { refusal }),
    finish: refusal !== undefined
      ? "refusal"
      : cut ?? (calls ? "calls" : one<FinishReason>(["stop", "stop", "stop", "length", "filter", "other"])),
    ...(usage && { usage }),
    ...(failure && { failure }),
  };
}

function randomUsage({ below }: Chance): Usage {
  const cached = below(2) * below(100);
  const cacheWrite = below(2) * below(100);
  const reasoning = below(2) * below(500);
  return {
    input: cached + cacheWrite + 1 + below(1_000),
    output: reasoning + 1 + below(100),
    ...(cached > 0 && { cached }),
    ...(cacheWrite > 0 && { cacheWrite }),
    ...(reasoning > 0 && { reasoning }),
  };
}

/** Returns the JSON text of the input of a call. That of a call that was cut is a part of it. */
export function inputText({ input, isCut }: CallBlock, { below }: Chance): string {
  const text = JSON.stringify(input);
  return isCut ? text.slice(0, below(text.length)) : text;
}

/** Returns the finish reason of a response that ends by itself: `empty` without text, file or call. */
export function finishOf({ finish, blocks, files }: CanonicalResponse): FinishReason {
  const hasContent = files.length > 0 ||
    blocks.some((block) => block.type === "call" || (block.type === "text" && block.text.trim() !== ""));
  return finish === "stop" && !hasContent ? "empty" : finish;
}

/** Splits a text at random places, also within a character of two code units. */
export function piecesOf(text: string, { below }: Chance): readonly string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const end = Math.min(text.length, at + 1 + below(30));
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces;
}
