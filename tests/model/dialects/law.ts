/**
 * The law of dialects: what a server says arrives, or is an error.
 *
 * @module
 */
import {
  agent,
  type AnswerPart,
  type Event,
  memory,
  type Model,
  ModelError,
  type ModelEvent,
  type RunResult,
  tool,
} from "@jizai/jizai";
import { collect } from "@jizai/jizai/testing";
import { assert, assertEquals, assertMatch } from "@std/assert";
import * as z from "zod";
import type { Chance } from "../../support/seeded.ts";
import { respond } from "../../support/providers/sse.ts";
import { type CanonicalResponse, finishOf, randomResponse, toolNames } from "./canonical.ts";
import { type Aspects, type Dialect, documented, type Form, type Rendered } from "./dialect.ts";
import { encode, framing } from "./framing.ts";

/** Returns the sizes of the chunks in which a response arrives, in bytes. Single bytes take the most time, and few responses arrive in them. */
function chunkSizes({ below }: Chance): readonly number[] {
  return below(4) === 0 ? [Infinity, 16, 1] : [Infinity, 16];
}

/** The content of a response, as the law compares it. */
interface Content {
  /** Reasoning, text and calls, in order. */
  readonly flow: readonly (readonly unknown[])[];
  readonly sources: readonly unknown[];
  readonly files: readonly unknown[];
  readonly refusals: readonly string[];
}

/** Checks the law for one random response in a form. A failure prints the stream. */
export async function checkLaw(
  dialect: Dialect,
  given: Form<Aspects>,
  frames: Form<typeof framing>,
  chance: Chance,
): Promise<void> {
  await checkResponse(dialect, given, { frames, chance, random: randomResponse(chance) });
}

/** Checks the law for a response that shows one quirk, in a form that is documented otherwise. */
export async function checkQuirk(
  dialect: Dialect,
  [aspect, value]: readonly [string, string],
  chance: Chance,
): Promise<void> {
  const concerns = dialect.concerns?.[aspect] ?? (() => true);
  let random = randomResponse(chance);
  while (!concerns(random)) random = randomResponse(chance);
  const form = { ...documented(dialect.aspects), [aspect]: value };
  await checkResponse(dialect, form, { frames: documented(framing), chance, random });
}

/** A random response, and the frames in which it is sent. */
interface Sample {
  readonly random: CanonicalResponse;
  readonly frames: Form<typeof framing>;
  readonly chance: Chance;
}

async function checkResponse(
  dialect: Dialect,
  given: Form<Aspects>,
  { random, frames, chance }: Sample,
): Promise<void> {
  const form = dialect.settle?.(given, random) ?? given;
  const response = dialect.expected(random, form);
  const rendered = dialect.render(response, form, chance);
  const bytes = encode(rendered.frames, frames, chance);
  try {
    await checkChunks(dialect, served(bytes, frames.type), chunkSizes(chance));
    await checkRun(dialect, { response, rendered, answer: served(bytes, frames.type)(Infinity) });
  } catch (cause) {
    const facts = [form, frames].map((form) => JSON.stringify(form));
    const stream = new TextDecoder().decode(bytes);
    throw new Error(`${dialect.name} breaks the law\n${facts.join("\n")}\n${JSON.stringify(response)}\n${stream}`, {
      cause,
    });
  }
}

/** Returns a `fetch` that answers in chunks of a size. */
type Served = (size: number) => () => Response;

function served(bytes: Uint8Array, type: Form<typeof framing>["type"]): Served {
  const headers = type === "none" ? {} : { "content-type": type };
  return (size) => () => new Response(respond(...chunksOf(bytes, size))().body, { headers });
}

/** Fails unless the events are the same for each size of the chunks. */
async function checkChunks({ model }: Dialect, served: Served, sizes: readonly number[]): Promise<void> {
  const read = async (size: number) => {
    const asked = model({ fetch: served(size) });
    const events: ModelEvent[] = [];
    try {
      for await (const read of streamOf(asked)) events.push(...read);
    } catch (error) {
      return { events, error: String(error) };
    }
    return { events, error: undefined };
  };
  const [first, ...others] = await Promise.all(sizes.map(read));
  for (const other of others) assertEquals(other, first);
}

function streamOf(model: Model): AsyncIterable<readonly ModelEvent[]> {
  const request = { model, instructions: "", messages: [], tools: [], options: {} };
  return model.stream(request, { signal: new AbortController().signal });
}

function chunksOf(bytes: Uint8Array, size: number): readonly Uint8Array[] {
  if (size === Infinity) return [bytes];
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
  return chunks;
}

/** One response and the form in which it is served. */
interface Case {
  readonly response: CanonicalResponse;
  readonly rendered: Rendered;
  readonly answer: () => Response;
}

/** Fails unless an agent receives the response, runs its calls and sends back what the server needs. */
async function checkRun(dialect: Dialect, { response, rendered, answer }: Case): Promise<void> {
  const bodies: unknown[] = [];
  const paused = rendered.paused ? [respond(encode(rendered.paused, documented(framing), plain))] : [];
  const answers = [...paused, answer, respond(closing(dialect))];
  const model = dialect.model({
    fetch(_, { body }) {
      bodies.push(JSON.parse(String(body)));
      return answers[Math.min(bodies.length, answers.length) - 1]!();
    },
  });
  const executed: unknown[] = [];
  const tools = toolNames.map((name) =>
    tool({
      name,
      description: name,
      input: z.record(z.string(), z.unknown()),
      execute(input) {
        executed.push([name, input]);
        return "done";
      },
    })
  );
  const bot = agent({ model, tools });
  const options = { session: "s", store: memory(), onError: () => {} };
  const { events, result } = await collect(bot.run({ prompt: "Hi", ...options }));
  if (response.failure || rendered.lost) return checkFailure(result, { response, rendered });
  if (result.status === "failed") throw result.error;
  checkEvents(events, { response, rendered });
  const [, message] = result.messages;
  const parts = message?.role === "assistant" ? message.parts : [];
  assertEquals(contentOf(parts), expectedContent(response));
  if (rendered.ran) assertEquals(ranIn(parts), rendered.ran);
  const runs = response.finish !== "filter" && response.finish !== "refusal";
  const complete = response.blocks.flatMap((block) =>
    block.type === "call" && !block.isCut ? [[block.name, block.input]] : []
  );
  assertEquals(executed, runs ? complete : []);
  if (rendered.checkNext) {
    const next = paused.length + 1;
    if (bodies.length === next) await bot.run({ prompt: "And then?", ...options }).result;
    rendered.checkNext(bodies[next], bodies[next - 1]);
  }
}

/** Always the first choice. */
const plain: Chance = { below: () => 0, one: ([first]) => first };

/** Returns an answer in the documented form. */
function closing(dialect: Dialect): Uint8Array {
  const form = documented(dialect.aspects);
  const response = { blocks: [{ type: "text", text: "Done." }], sources: [], files: [], finish: "stop" } as const;
  const { frames } = dialect.render(dialect.expected(response, form), form, plain);
  return encode(frames, documented(framing), plain);
}

function checkFailure(
  { status, error }: RunResult,
  { response: { failure }, rendered }: Pick<Case, "response" | "rendered">,
) {
  assertEquals(status, "failed");
  assert(error instanceof ModelError, String(error));
  if (rendered.lost) assertMatch(error.message, rendered.lost);
  else {assertEquals(
      [error.message.includes(failure!.message), error.recoverable],
      [true, failure!.recoverable],
      error.message,
    );}
}

/** Fails unless the first response ended as it must, and every streamed input belongs to a named call. */
function checkEvents(events: readonly Event[], { response, rendered }: Pick<Case, "response" | "rendered">): void {
  const finished = events.find((event) => event.type === "model.finished");
  assert(finished);
  const none = { input: 0, output: 0 };
  assertEquals([finished.finish, finished.usage], [finishOf(response), response.usage ?? none]);
  for (const event of events) {
    if (event.type === "call.delta") assert(event.name !== "", "a call begins before its name is known");
  }
  const warnings = events.filter((event) => event.type === "warning");
  assertEquals(warnings.length, rendered.warnings ?? 0, JSON.stringify(warnings));
}

function expectedContent({ blocks, sources, files, refusal }: CanonicalResponse): Content {
  return {
    flow: merged(
      blocks.map((block) =>
        block.type === "call" ? [block.type, block.name, block.isCut ? "cut" : block.input] : [block.type, block.text]
      ),
    ),
    sources,
    files,
    refusals: refusal === undefined ? [] : [refusal],
  };
}

function contentOf(parts: readonly AnswerPart[]): Content {
  const flow = parts.flatMap((part): unknown[][] => {
    if (part.type === "text" || part.type === "reasoning") return part.text === "" ? [] : [[part.type, part.text]];
    const input = part.type === "call" && (part.incomplete ? "cut" : part.malformed ?? part.input);
    return part.type === "call" ? [[part.type, part.name, input]] : [];
  });
  return {
    flow: merged(flow),
    sources: parts.flatMap((part) => part.type === "source" ? [{ url: part.url, title: part.title }] : []),
    files: parts.flatMap((part) => part.type === "media" ? [{ mediaType: part.mediaType, data: part.data }] : []),
    refusals: parts.flatMap((part) => part.type === "refusal" ? [part.text] : []),
  };
}

/** Returns the calls and results of tools that the provider ran. */
function ranIn(parts: readonly AnswerPart[]): readonly (readonly unknown[])[] {
  return parts.flatMap((part): unknown[][] => {
    if (part.type === "provider_call") return [[part.name, part.input]];
    return part.type === "provider_result" ? [[part.name, part.status, part.output]] : [];
  });
}

/** Joins adjacent texts of one type. */
function merged(flow: readonly (readonly unknown[])[]): readonly (readonly unknown[])[] {
  const joined: unknown[][] = [];
  for (const [type, ...more] of flow) {
    if (more[0] === "") continue;
    const last = joined.at(-1);
    if (last && last[0] === type && type !== "call") last[1] = `${last[1]}${more[0]}`;
    else joined.push([type, ...more]);
  }
  return joined;
}
