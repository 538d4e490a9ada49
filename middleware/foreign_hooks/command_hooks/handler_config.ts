/**
 * The handlers in a settings file, and their schema.
 *
 * @module
 */
import * as z from "zod";
import { maybe } from "../kit/fields.ts";

/** The fields of every handler. Other fields, such as `statusMessage`, have no effect. */
export interface AnyHandler {
  /** Timeout in seconds. Default: see the dialect. A handler in the background has until the run ends. */
  readonly timeout?: number | undefined;
  /**
   * The calls that the handler is for, such as `Bash(git *)` or `Edit(src/*)`, however they are spelled. It also runs for a command that contains such a
   * command, and for a command that only a shell can evaluate: one with variables, or one that cannot be parsed. It looks into substitutions for the name of a
   * program, as in `Bash(rm *)`; with more than a name, as in `Bash(git push *)`, it runs for every command with a substitution. At events without a call it
   * does not run. Default: all calls.
   */
  readonly if?: string | undefined;
  /** Whether a failure blocks. Default: "continue". */
  readonly onFailure?: "continue" | "block" | undefined;
}

/** A handler that is a command. */
export interface CommandHook extends AnyHandler {
  /** The type. */
  readonly type: "command";
  /** The line for the shell; with `args`, the program. */
  readonly command: string;
  /** The arguments of the program. */
  readonly args?: readonly string[] | undefined;
  /** The shell. Default: `bash`, and `sh` if there is none. */
  readonly shell?: string | undefined;
  /** Runs in the background, and decides nothing. Default: false. */
  readonly async?: boolean | undefined;
  /** The same; with exit code 2 the model receives the reason. Default: false. */
  readonly asyncRewake?: boolean | undefined;
}

/** A handler that receives the input as a POST request. */
export interface HttpHook extends AnyHandler {
  /** The type. */
  readonly type: "http";
  /** The address. */
  readonly url: string;
  /** Headers; `$NAME` is a variable in `allowedEnvVars`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The variables that headers may contain. Default: none. */
  readonly allowedEnvVars?: readonly string[] | undefined;
}

/** A handler that asks a model, or an agent with tools. */
export interface PromptHook extends AnyHandler {
  /** The type. */
  readonly type: "prompt" | "agent";
  /** The prompt; `$ARGUMENTS` is the input as JSON. */
  readonly prompt: string;
}

/** A handler that calls a tool of an MCP server. */
export interface McpToolHook extends AnyHandler {
  /** The type. */
  readonly type: "mcp_tool";
  /** The server, by its name in the option `mcp`. */
  readonly server: string;
  /** The tool. */
  readonly tool: string;
  /** The input of the tool; `${tool_input.file_path}` in a text is a field of the input. */
  readonly input?: Readonly<Record<string, unknown>> | undefined;
}

/** A handler. */
export type HandlerConfig = CommandHook | HttpHook | PromptHook | McpToolHook;

const shared = {
  timeout: maybe(z.number().positive()),
  if: maybe(z.string()),
  onFailure: maybe(z.enum(["continue", "block"])),
};
const texts = z.record(z.string(), z.string());
const prompt = { prompt: z.string(), ...shared };
/** The schema of a handler. */
export const handler = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("command"),
    command: z.string(),
    args: maybe(z.array(z.string())),
    shell: maybe(z.string()),
    async: maybe(z.boolean()),
    asyncRewake: maybe(z.boolean()),
    ...shared,
  }),
  z.object({
    type: z.literal("http"),
    url: z.string(),
    headers: maybe(texts),
    allowedEnvVars: maybe(z.array(z.string())),
    ...shared,
  }),
  z.object({ type: z.literal("prompt"), ...prompt }),
  z.object({ type: z.literal("agent"), ...prompt }),
  z.object({
    type: z.literal("mcp_tool"),
    server: z.string(),
    tool: z.string(),
    input: maybe(z.record(z.string(), z.unknown())),
    ...shared,
  }),
]);
