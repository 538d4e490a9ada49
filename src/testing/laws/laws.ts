/**
 * The parts of all laws of ports: sample sessions, and the runner that tries the laws against an adapter.
 *
 * @module
 */
import { cancellationOf, withGracePeriod } from "../../core/lib/cancellation.ts";
import { canonicalJson } from "../../core/lib/json.ts";
import type { RunSnapshot } from "../../core/position.ts";
import type { Session } from "../../core/session.ts";
import type { Store } from "../../core/store.ts";
import { type Message, user } from "../../protocol/message.ts";

// Runs the laws of a port against an adapter.

/** Reports a value whose JSON differs from the expected one. */
export type Expect = (subject: string, seen: unknown, expected: unknown) => void;

/** Tries one law on a new adapter. `signal` aborts when it takes too long. `instances` are all instances on the adapter's database, of which it is the first. */
type Law<P> = (port: P, expect: Expect, signal: AbortSignal, instances: readonly P[]) => Promise<void>;

/** The laws of a port, by name. */
export type Laws<P> = Readonly<Record<string, Law<P>>>;

/** Options of the laws. */
export interface LawOptions {
  /** Lets time pass for the adapter, in milliseconds. Without it, expiry is not tested. */
  readonly pass?: (ms: number) => void | Promise<void>;
  /** Milliseconds that one law may take. Default: 10,000. */
  readonly time?: number;
}

/** Creates a new, empty adapter, or several instances of it on one empty database, as processes that share the database have them. */
export type Make<P> = (options: {
  /** Milliseconds after its last change that an entry is deleted; for the session of an active run, after the end of its lease. */
  readonly expireIn?: number;
}) => P | readonly P[] | Promise<P | readonly P[]>;

/** The expiry of adapters under test: shorter than a law may take, because `pass` may advance the clock of the laws too. */
export const expireIn = 1_000;

/** Returns the laws of an adapter with an expiry of `expireIn`. */
export type ExpiryLaws<P> = (pass: NonNullable<LawOptions["pass"]>) => Laws<P>;

/** Tries every law, and those of expiry if `pass` is given. Throws an `Error` with a paragraph for each broken law. */
export async function checkLaws<P>(
  make: Make<P>,
  laws: Laws<P>,
  expiryLaws: ExpiryLaws<P>,
  { pass, time }: LawOptions,
): Promise<void> {
  const paragraphs = [
    ...await brokenLaws(laws, () => make({}), time),
    ...pass ? await brokenLaws(expiryLaws(pass), () => make({ expireIn }), time) : [],
  ];
  if (paragraphs.length > 0) throw new Error(paragraphs.join("\n"));
}

/** Tries every law, and returns a paragraph for each broken one. */
export async function brokenLaws<P>(
  laws: Laws<P>,
  make: () => P | readonly P[] | Promise<P | readonly P[]>,
  time = 10_000,
): Promise<readonly string[]> {
  const paragraphs: string[] = [];
  for (const [law, tried] of Object.entries(laws)) {
    const seen = await problemsOf(async (expect, signal) => {
      const made: P | readonly P[] = await make();
      const instances = isList(made) ? made : [made];
      await tried(instances[0] as P, expect, signal, instances); // there is at least one
    }, time);
    if (seen.length > 0) paragraphs.push([`It breaks the law that it ${law}:`, ...seen].join("\n- "));
  }
  return paragraphs;
}

function isList<P>(made: P | readonly P[]): made is readonly P[] {
  return Array.isArray(made);
}

/** Runs the work of a law, and returns the problems. */
async function problemsOf(
  work: (expect: Expect, signal: AbortSignal) => Promise<void>,
  time: number,
): Promise<readonly string[]> {
  const problems = new Set<string>();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), time);
  const expect: Expect = (subject, seen, expected) => {
    if (canonicalJson(seen) !== canonicalJson(expected)) {
      problems.add(`${subject}: ${shortened(seen)} instead of ${shortened(expected)}`);
    }
  };
  try {
    await withGracePeriod(work(expect, late.signal), cancellationOf(late.signal), 100, () => {});
  } catch (error) {
    if (!late.signal.aborted) problems.add(`it threw ${error}`);
  } finally {
    clearTimeout(timer);
  }
  if (late.signal.aborted) problems.add(`it was not done after ${time} ms`);
  return [...problems];
}

/** Shortens the JSON of a value. */
function shortened(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 160)}… of ${text.length} characters` : text;
}

// Sample sessions for the laws of journals.

/** The store that laws test: a journal, and the operations on whole sessions that are made of its operations. */
export type TestedStore = Omit<Store, "durable">;

/** Returns a session with one message. */
export function sessionWith(id: string, text: string, version = 0): Session {
  return { id, version, messages: [user(text)] };
}

/** Text with characters that need escaping somewhere. */
export const oddText =
  `"quoted" 'quoted' \\ \\n \n \r\n \t \0 \u2028 \ufeff \ud83d \ude00 é e\u0301 漢字 👩‍👩‍👧‍👦 </script> ?1 :a NULL %s {{ }}`;

/** Texts that are longer than the values of some databases. A piece of one may end within a character of two, three or four bytes. */
export const long: readonly string[] = [
  "x".repeat(70_000),
  `.${"😀".repeat(150_000)}`,
  "ж漢😀 ".repeat(130_000),
  `${"ж漢😀 ".repeat(130_000)}and more`,
  "x".repeat(2_500_000),
  "漢",
];

const messages: readonly Message[] = [
  {
    role: "user",
    parts: [{ type: "text", text: oddText }, { type: "media", mediaType: "image/png", data: "iVBORw0KGgo=" }],
  },
  {
    role: "assistant",
    parts: [
      {
        type: "reasoning",
        text: "Hm.",
        meta: { signature: "abc", nested: [1, 1.5e300, -0.25, null, true, { "": [] }] },
      },
      { type: "text", text: "I look." },
      { type: "call", id: "call_1", name: "look", input: { at: ["here", {}] } },
      { type: "call", id: "call_2", name: "look", input: "{", malformed: "Unexpected end" },
    ],
  },
  {
    role: "tool",
    results: [
      { callId: "call_1", name: "look", status: "ok", parts: [{ type: "text", text: "" }] },
      { callId: "call_2", name: "look", status: "error", parts: [] },
    ],
  },
  {
    role: "user",
    parts: [{ type: "media", mediaType: "text/plain", url: "https://example.com/?a=b#c" }],
    from: "inject",
  },
];

const run: RunSnapshot = {
  id: "run_1",
  startedAt: 1_700_000_000_000,
  position: {
    at: "tools",
    turn: 2,
    message: { role: "assistant", parts: [{ type: "call", id: "call_3", name: "pay", input: { sum: 5 } }] },
    calls: [
      {
        call: { id: "call_3", name: "pay", input: { sum: 5 } },
        state: "waiting",
        questions: [{ callId: "call_3", tool: "pay", input: { sum: 5 }, questions: ["Run pay?"] }],
        saved: { deep: [[[]]] },
      },
      {
        call: { id: "call_4", name: "look", input: "{", malformed: "Unexpected end", incomplete: true },
        state: "done",
        result: { callId: "call_4", name: "look", status: "denied", parts: [], context: ["Seen"] },
      },
    ],
  },
  exit: {
    status: "paused",
    questions: [{ callId: "call_3", tool: "pay", input: { sum: 5 }, questions: ["Run pay?"] }, {
      questions: ["Go on?"],
    }],
  },
  finish: "length",
  counters: { turns: 2, calls: 3, continuations: 1, batches: 2, outputs: 0, cuts: 1 },
  usage: { input: 100, output: 20, cached: 3 },
  state: [["limit.used", 3], ["seen", { deep: [[[]]], "__proto_": null }], ["none", null]],
  answers: [],
  before: 1,
  events: 42,
};

/** Returns a session whose run is in progress. Its messages are longer than the values of some databases. */
export function runningSession(id: string, version = 0): Session {
  const { exit: _, ...running } = run;
  return { ...sessionWith(id, "x".repeat(200_000), version), run: running };
}

/** Sessions with every field, with no optional field, and with unusual text. */
export const sessions: readonly Session[] = [
  { id: "full", version: 0, messages, run },
  { id: "ended", version: 0, messages },
  { id: "empty", version: 0, messages: [] },
  sessionWith("oddText", oddText),
  sessionWith(`an "oddText" id's\n漢字 😀 / : %`, "Hi"),
];

/** Returns a function that returns random whole numbers from 0, below its argument: the same ones for the same seed (mulberry32). */
export function randomNumbers(seed: number): (end: number) => number {
  let state = seed;
  return (end) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32 * end);
  };
}
