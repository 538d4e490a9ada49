/**
 * The growth of the time with the size of hostile input. Each input is one that makes naive code quadratic or exponential.
 *
 * @module
 */
import { agent, serve, tool } from "@jizai/jizai";
import { client } from "@jizai/jizai/client";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { redact } from "@jizai/jizai/middleware/redact";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import * as z from "zod";
import type { Measure } from "../kit/measure.ts";

/** Work on input of a size. */
interface Case {
  readonly what: string;
  /** The smallest of three sizes: the others are 4 and 16 times as large. */
  readonly size: number;
  readonly work: (size: number) => Promise<unknown>;
}

const factor = 4;
const rounds = 5;
/** The most that the time may grow while the size grows by `factor`. */
const mostGrowth = 6;

const hidden = () => redact({ secrets: ["hunter2-Kq8ZpW", "a".repeat(30) + "b"] });

/** Streams a text through redact(), in deltas of 20 characters. */
function streamed(what: string, pattern: string): Case {
  return {
    what: `redact() streams ${what}`,
    size: 10_000,
    work(size) {
      const text = pattern.repeat(Math.ceil(size / pattern.length));
      const pieces = text.match(/[^]{1,20}/g) ?? [];
      return agent({ model: scripted({ text: pieces }), use: [hidden()] }).run("Go").result;
    },
  };
}

/** Masks a text that a tool returns. */
function returned(what: string, pattern: string): Case {
  const look = (text: string) => tool({ name: "look", description: "", input: z.object({}), execute: () => text });
  return {
    what: `redact() masks a result of ${what}`,
    size: 20_000,
    work(size) {
      const text = pattern.repeat(Math.ceil(size / pattern.length));
      const model = scripted({ calls: [["look", {}]] }, "Done.");
      return agent({ model, tools: [look(text)], use: [hidden()], limits: { output: 10_000_000 } }).run("Go").result;
    },
  };
}

/** Calls one tool of workspace() on files. The errors of tools that find nothing are expected. */
function searched(
  what: string,
  size: number,
  files: (size: number) => Readonly<Record<string, string>>,
  call: (size: number) => readonly [string, Record<string, unknown>],
): Case {
  return {
    what,
    size,
    work(size) {
      const model = scripted({ calls: [call(size)] }, "Done.");
      const editor = agent({ model, use: [workspace(memoryFiles(files(size)))] });
      return editor.run({ prompt: "Go", onError: () => {} }).result;
    },
  };
}

const app = () =>
  serve(agent({ model: scripted("Done.") }), {
    wires: [agUi(), aiSdkUi(), chatCompletions(), responses()],
    maxBody: 4_000_000,
  });

/** Posts a body with `size` messages. */
function posted(path: string, bodyOf: (messages: number) => unknown, what = "assistant messages"): Case {
  return {
    what: `POST ${path} with ${what}`,
    size: 600,
    async work(size) {
      const body = JSON.stringify(bodyOf(size));
      const headers = { "content-type": "application/json" };
      const response = await app().request(path, { method: "POST", headers, body });
      if (response.status !== 200) throw new Error(`Cannot measure ${path}: it was answered with ${response.status}`);
      await response.text();
    },
  };
}

/** Returns many messages of the assistant, which wires may have to join, and one of the user. */
function history<T>(count: number, assistant: (id: string) => T, user: T): T[] {
  return [...Array.from({ length: count }, (_, index) => assistant(`m${index}`)), user];
}

const plain = (count: number) =>
  history(count, (id) => ({ id, role: "assistant", content: "Hello." }), { id: "u", role: "user", content: "Hi" });

/** Returns a message with many calls, and the result of each one. */
function called(count: number) {
  const ids = Array.from({ length: count }, (_, index) => `c${index}`);
  const tool_calls = ids.map((id) => ({ id, type: "function", function: { name: "look", arguments: "{}" } }));
  return [
    { id: "u1", role: "user", content: "Hi" },
    { id: "a1", role: "assistant", content: "Hm.", tool_calls, toolCalls: tool_calls },
    ...ids.map((id) => ({ id: `r${id}`, role: "tool", tool_call_id: id, toolCallId: id, content: "Seen." })),
    { id: "u2", role: "user", content: "Hi" },
  ];
}

const permitted: Case = {
  what: "permissions() matches rules with many wildcards",
  size: 250,
  work(size) {
    const rules = Array.from({ length: size }, (_, index) => `${"*a".repeat(25)}*b${index}`);
    const name = "a".repeat(64);
    const look = tool({ name, description: "", input: z.object({}), execute: () => "Seen." });
    const model = scripted({ calls: Array.from({ length: 20 }, () => [name, {}] as const) }, "Done.");
    return agent({ model, tools: [look], use: [permissions({ deny: rules })] }).run("Go").result;
  },
};

/** Reads an event of many bytes, which arrives in reads of 16,384. */
const longEvent: Case = {
  what: "client() reads an event on one long line",
  size: 500_000,
  async work(size) {
    const events = [{ type: "data", name: "file", data: "x".repeat(size) }, { type: "run.finished", status: "done" }];
    const frames = events.map((event, index) => `id: ${index + 1}\ndata: ${JSON.stringify(event)}\n\n`);
    const whole = new Blob(frames);
    let at = 0;
    const body = new ReadableStream({
      async pull(controller) {
        const piece = whole.slice(at, at += 16_384);
        if (piece.size > 0) controller.enqueue(await piece.bytes());
        else controller.close();
      },
    });
    const { status } = await client("", { fetch: () => new Response(body) }).run({ prompt: "Go" }).result();
    if (status !== "done") throw new Error(`Cannot measure client(): the run is ${status}`);
  },
};

const cases: readonly Case[] = [
  longEvent,
  streamed("backslashes", "\\"),
  streamed("the beginning of a secret", "hunter2-"),
  streamed("repeated letters of a secret", "a"),
  streamed("escapes in JSON in JSON", '\\\\\\"'),
  streamed("the beginning of a private key", "-----BEGIN RSA "),
  streamed("a token that grows", "eyJhbGciOiJI"),
  returned("backslashes", "\\"),
  returned("repeated letters of a secret", "a"),
  returned("beginnings of private keys", "-----BEGIN PRIVATE KEY-----"),
  searched(
    "search_files looks for a text that nearly matches",
    20_000,
    (size) => ({ "a.txt": "a".repeat(size) }),
    (size) => ["search_files", { path: ".", pattern: `${"a".repeat(Math.min(900, size))}b` }],
  ),
  searched(
    "search_files with nested repetitions",
    10_000,
    (size) => ({ "a.txt": "a".repeat(size) }),
    () => ["search_files", { path: ".", pattern: "(a+)+b", regex: true }],
  ),
  searched(
    "edit_file looks for a text that nearly matches",
    20_000,
    (size) => ({ "a.txt": "a".repeat(size) }),
    (size) => ["edit_file", { path: "a.txt", old: `${"a".repeat(size / 2)}b`, new: "c" }],
  ),
  posted(
    "/ag-ui",
    (count) => ({ threadId: "s", runId: "r", messages: plain(count), tools: [], context: [], state: {} }),
  ),
  posted("/chat", (count) => ({
    id: "s",
    messages: history(
      count,
      (id) => ({ id, role: "assistant", parts: [{ type: "text", text: "Hello." }] }),
      { id: "u", role: "user", parts: [{ type: "text", text: "Hi" }] },
    ),
  })),
  posted("/v1/chat/completions", (count) => ({ model: "agent", stream: true, messages: plain(count) })),
  posted("/v1/responses", (count) => ({
    model: "agent",
    stream: true,
    input: plain(count).map(({ id: _, ...message }) => message),
  })),
  posted("/v1/chat/completions", (count) => ({ model: "agent", stream: true, messages: called(count) }), "results"),
  posted(
    "/ag-ui",
    (count) => ({ threadId: "s", runId: "r", messages: called(count), tools: [], context: [], state: {} }),
    "results",
  ),
  permitted,
];

/** Measures each case at three sizes: the median of five interleaved rounds, and its growth. */
export async function linearMeasures(): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  for (const { what, size, work } of cases) {
    const sizes = [size, size * factor, size * factor ** 2];
    const times = await mediansOf(sizes, work);
    for (const [index, size] of sizes.entries()) {
      measures.push({ what: `${what}: ${size}`, figure: times[index] ?? NaN, unit: "ms" });
    }
    for (const [index, step] of ["small to middle", "middle to large"].entries()) {
      const figure = (times[index + 1] ?? NaN) / (times[index] ?? NaN);
      measures.push({ what: `${what}: growth per 4x, ${step}`, figure, unit: "x", atMost: mostGrowth });
    }
  }
  return measures;
}

async function mediansOf(sizes: readonly number[], work: Case["work"]): Promise<readonly number[]> {
  const taken = sizes.map((): number[] => []);
  await work(sizes[0] ?? 0); // compiles the code
  for (let round = 0; round < rounds; round++) {
    for (const [index, size] of sizes.entries()) {
      const start = performance.now();
      await work(size);
      taken[index]?.push(performance.now() - start);
    }
  }
  return taken.map((times) => times.toSorted((a, b) => a - b)[Math.floor(rounds / 2)] ?? NaN);
}
