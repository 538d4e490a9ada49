/**
 * Writes transcripts to files that hooks of other systems can read, on Deno, Node and Bun.
 *
 * @module
 */
import { appendFile, mkdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import {
  type AnswerPart,
  type CallResult,
  type ContentPart,
  type Message,
  type Middleware,
  type Run,
  type Scope,
  state,
  textOf,
} from "../../mod.ts";
import { canonicalJson, expectNames, hashOf } from "../../src/core/kit.ts";

// The lines of a transcript, in the format of Claude Code.

/** A line of a file. */
interface Line {
  readonly type: "user" | "assistant";
  readonly uuid: string;
  readonly parentUuid: string | null;
  readonly sessionId: string;
  readonly timestamp: string;
  readonly isSidechain: boolean;
  readonly isMeta?: boolean;
  readonly message: { readonly role: "user" | "assistant"; readonly content: unknown };
}

/** Returns a line for each message of a run. `last` is the id of the line before them. */
function linesOf(messages: readonly Message[], run: Run, last: string | null): Line[] {
  let parentUuid = last;
  return messages.map((message) => {
    const uuid = crypto.randomUUID();
    const line = {
      uuid,
      parentUuid,
      sessionId: run.session,
      timestamp: new Date().toISOString(),
      isSidechain: run.parent !== undefined,
      ...contentOf(message),
    };
    parentUuid = uuid;
    return line;
  });
}

function contentOf(message: Message): Pick<Line, "type" | "message" | "isMeta"> {
  switch (message.role) {
    case "user": {
      const isText = message.parts.every(({ type }) => type === "text");
      const content = isText ? textOf(message) : message.parts.map(blockOf);
      return { type: "user", ...(message.from !== undefined && { isMeta: true }), message: { role: "user", content } };
    }
    case "assistant":
      return { type: "assistant", message: { role: "assistant", content: message.parts.map(blockOf) } };
    case "tool":
      return { type: "user", message: { role: "user", content: message.results.map(resultOf) } };
  }
}

function resultOf({ callId: tool_use_id, status, parts }: CallResult): unknown {
  return { type: "tool_result", tool_use_id, content: parts.map(blockOf), ...(status !== "ok" && { is_error: true }) };
}

function blockOf(part: AnswerPart | ContentPart): unknown {
  switch (part.type) {
    case "text":
      return part;
    case "source":
    case "refusal":
    case "logprobs":
      return part;
    case "provider_call":
      return { type: "server_tool_use", id: part.callId, name: part.name, input: part.input };
    case "provider_result":
      return { type: `${part.name}_tool_result`, tool_use_id: part.callId, content: part.output };
    case "reasoning":
      return { type: "thinking", thinking: part.text };
    case "call":
      return { type: "tool_use", id: part.id, name: part.name, input: part.input };
    case "media": {
      const { data, url, mediaType: media_type } = part;
      return {
        type: "image",
        source: data === undefined ? { type: "url", url } : { type: "base64", media_type, data },
      };
    }
  }
}

// The middleware `transcript()`, and its options.

/** Options of `transcript()`. */
export interface TranscriptOptions {
  /** Directory of the files. It is created if it does not exist. */
  readonly dir: string;
}

/** State of the file of a session. */
interface Written {
  /** Number of the session's messages in the file. */
  readonly count: number;
  /** Id of the last line. */
  readonly last: string | null;
  /** Hash of the last message. */
  readonly hash: string;
}

/**
 * Writes each session to a file of JSON lines, one per message, in the format of Claude Code and Qoder: `<dir>/<session>.jsonl`, and
 * `<dir>/<session>/subagents/agent-<run>.jsonl` for a subagent. The file is updated when a turn begins, before the agent finishes, and when the session
 * closes. Written lines never change: if the session goes back to an earlier message, such as for another answer, the conversation is written again, from a
 * line without `parentUuid`. If `claude_hooks()` and similar middleware stand after it in `use`, hooks receive the path as `transcript_path`.
 *
 * Deno asks for permission to write to `dir`, and for a relative `dir` to read the working directory. If a write fails, the run continues, and a warning
 * says that the transcript is incomplete. Place it before `compaction`, so that the file contains the summaries.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { transcript } from "@jizai/jizai/middleware/transcript";
 * import { scripted } from "@jizai/jizai/model/scripted";
 *
 * const assistant = agent({ model: scripted("Hello!"), use: [transcript({ dir: "./transcripts" })] });
 * ```
 */
export function transcript(options: TranscriptOptions): Middleware {
  expectNames("Cannot create transcript()", options, ["dir"]);
  const { dir } = options;
  const path = state("transcript.path", () => "");
  const start: Written = { count: 0, last: null, hash: "" };
  const writtenCount = state("transcript.written", () => start);
  const ofSession = state("transcript.written", () => start, { lifetime: "session" });
  const written = ({ run }: Scope) => run.parent ? writtenCount : ofSession;

  /** Appends the messages that are not in the file yet. If the session went back to an earlier message, that is all of them. */
  async function update(ctx: Scope, messages: readonly Message[]): Promise<void> {
    const { count, last, hash } = written(ctx).get(ctx);
    const isContinued = count === 0 || await hashOfMessage(messages[count - 1]) === hash;
    await add(ctx, isContinued ? messages.slice(count) : messages, { messages, parent: isContinued ? last : null });
  }

  /** Appends lines for messages after the line `parent`. Afterwards, `messages` of the session are in the file. */
  async function add(
    ctx: Scope,
    added: readonly Message[],
    { messages, parent }: { readonly messages: readonly Message[]; readonly parent: string | null },
  ): Promise<void> {
    const lines = linesOf(added, ctx.run, parent);
    if (lines.length > 0) await append(ctx, lines);
    const hash = await hashOfMessage(messages.at(-1));
    written(ctx).set(ctx, { count: messages.length, last: lines.at(-1)?.uuid ?? parent, hash });
  }

  async function append(ctx: Scope, lines: readonly Line[]): Promise<void> {
    const file = path.get(ctx);
    try {
      await mkdir(dirname(file), { recursive: true });
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
      await appendFile(file, text, { mode: 0o600 });
    } catch (error) {
      const id = ctx.run.report(error);
      const message = "The transcript is incomplete: it could not be written.";
      ctx.emit({ type: "warning", code: "hook.failed", message, middleware: "transcript", error: id });
    }
  }

  return {
    name: "transcript",
    before: ["compaction"],
    inherit: true,
    async session(ctx, next) {
      path.set(ctx, resolve(dir, `${nameOf(ctx.run)}.jsonl`)); // absolute: a hook may run in another folder
      await append(ctx, []);
      const result = await next();
      await update(ctx, result.messages);
      return result;
    },
    async turn(ctx, next) {
      await update(ctx, ctx.transcript);
      return await next();
    },
    async stop(ctx, next) {
      await update(ctx, ctx.transcript);
      return await next();
    },
    async compact(ctx, next) {
      await update(ctx, ctx.transcript);
      const compaction = await next();
      if (compaction.type === "declined") return compaction;
      const known = new Set(ctx.transcript);
      const { messages } = compaction;
      const parent = written(ctx).get(ctx).last;
      await add(ctx, messages.filter((message) => !known.has(message)), { messages, parent });
      return compaction;
    },
  };
}

function hashOfMessage(message: Message | undefined): Promise<string> {
  return hashOf(canonicalJson(message));
}

/** Returns the name of a run's file: the encoded id of its session, or for a subagent its own name below that of the outermost run. */
function nameOf(run: Run): string {
  if (!run.parent) return encodeURIComponent(run.session).replace(/^\.\.?$/, (dots) => dots.replaceAll(".", "%2E"));
  let top = run.parent;
  while (top.parent) top = top.parent;
  return `${nameOf(top)}/subagents/agent-${run.id}`;
}
