/**
 * Keeps the transcript in a file, as hooks of other systems read it. For Deno.
 *
 * @module
 */
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

/** Where transcripts are kept. */
export interface TranscriptOptions {
  /** The directory; made where there is none. */
  readonly dir: string;
}

/** How far the file of a session is. */
interface Written {
  /** How many messages of the session are in it. */
  readonly count: number;
  /** The id of its last line. */
  readonly last: string | null;
}

/** One line of a file. */
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

/**
 * Writes each session into a file of its own, a line of JSON for each message, in the form of Claude Code and Qoder: `<dir>/<session>.jsonl`, and
 * `<dir>/<session>/subagents/agent-<run>.jsonl` for an agent beneath. It is up to date when a turn begins, when the agent is about to finish, and when the
 * session is closed. Nothing that was written is taken back. `claude_hooks()` and its like, after it in `use`, tell hooks the path as `transcript_path`.
 *
 * Takes the permission to write there, and for a `dir` that is not absolute also that to read where this process is. Where it cannot write, the run goes
 * on, and a warning says that the transcript is incomplete.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { transcript } from "@jizai/jizai/middleware/transcript";
 * import { scripted } from "@jizai/jizai/model/scripted";
 *
 * const assistant = agent({ model: scripted("Hello!"), use: [transcript({ dir: "./transcripts" })] });
 * ```
 */
export function transcript({ dir }: TranscriptOptions): Middleware {
  const path = state("transcript.path", () => "");
  const start: Written = { count: 0, last: null };
  const own = state("transcript.written", () => start);
  const lasting = state("transcript.written", () => start, { lifetime: "session" });
  const written = ({ run }: Scope) => run.parent ? own : lasting;

  /** Brings the file up to date. */
  async function keep(ctx: Scope, messages: readonly Message[]): Promise<void> {
    const { count } = written(ctx).get(ctx);
    await add(ctx, messages.slice(count), messages.length);
  }

  /** Writes messages, after which so many of the session are in the file. */
  async function add(ctx: Scope, messages: readonly Message[], count: number): Promise<void> {
    const { last } = written(ctx).get(ctx);
    const lines = linesOf(messages, ctx.run, last);
    if (lines.length > 0) await append(ctx, lines);
    written(ctx).set(ctx, { count, last: lines.at(-1)?.uuid ?? last });
  }

  async function append(ctx: Scope, lines: readonly Line[]): Promise<void> {
    const file = path.get(ctx);
    try {
      await Deno.mkdir(file.slice(0, file.lastIndexOf("/")), { recursive: true });
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
      await Deno.writeTextFile(file, text, { append: true, mode: 0o600 });
    } catch (error) {
      const id = ctx.run.report(error);
      const message = "The transcript is incomplete: it could not be written.";
      ctx.emit({ type: "warning", code: "hook.failed", message, middleware: "transcript", error: id });
    }
  }

  return {
    name: "transcript",
    inherit: true,
    async session(ctx, next) {
      const root = /^(\/|[a-z]:)/i.test(dir) ? dir : `${Deno.cwd()}/${dir}`; // who reads it may be elsewhere
      path.set(ctx, `${root}/${nameOf(ctx.run)}.jsonl`);
      await append(ctx, []);
      const result = await next();
      await keep(ctx, result.messages);
      return result;
    },
    async turn(ctx, next) {
      await keep(ctx, ctx.transcript);
      return await next();
    },
    async stop(ctx, next) {
      await keep(ctx, ctx.transcript);
      return await next();
    },
    async compact(ctx, next) {
      await keep(ctx, ctx.transcript);
      const compaction = await next();
      if (compaction.type === "declined") return compaction;
      const known = new Set(ctx.transcript);
      const { messages } = compaction;
      await add(ctx, messages.filter((message) => !known.has(message)), messages.length);
      return compaction;
    },
  };
}

/** The name of a run's file: that of its session, in which nothing leads to another folder, or its own beneath the session of the outermost. */
function nameOf(run: Run): string {
  if (!run.parent) return encodeURIComponent(run.session).replace(/^\.\.?$/, (dots) => dots.replaceAll(".", "%2E"));
  let top = run.parent;
  while (top.parent) top = top.parent;
  return `${nameOf(top)}/subagents/agent-${run.id}`;
}

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
      ...said(message),
    };
    parentUuid = uuid;
    return line;
  });
}

function said(message: Message): Pick<Line, "type" | "message" | "isMeta"> {
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
