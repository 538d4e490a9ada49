/**
 * Rules such as `Bash(git *)`: which calls they match.
 *
 * @module
 */
import { objectOf } from "../../kit/fields.ts";
import { absolutePath } from "../../kit/run.ts";

/** A rule for the calls of a tool. */
export interface Rule {
  /** The tool; `mcp__server` is every tool of that server, `*` every tool. */
  readonly toolName: string;
  /**
   * The command, path or address of the call. `*` matches every text, `words:*` matches a text that begins with these words, `domain:name` matches
   * addresses of that host. Paths are relative to the working directory. Default: every call.
   */
  readonly ruleContent?: string | undefined;
}

/** Options of applying a rule. */
export interface MatchOptions {
  /** The working directory, which paths are relative to. */
  readonly cwd: string;
  /** The parts of a shell command that must match. "maybe" is "some", and also accepts a command that only a shell can evaluate. An allow needs "all". */
  readonly parts: "all" | "some" | "maybe";
}

/** Parses `Tool` or `Tool(content)`. */
export function parseRule(text: string): Rule {
  const [, toolName = text, ruleContent] = text.match(/^([^()]+)\((.*)\)$/s) ?? [];
  return { toolName, ruleContent };
}

/** Whether a rule matches a call. */
export function matchesCall(
  { toolName, ruleContent }: Rule,
  name: string,
  input: unknown,
  { cwd, parts }: MatchOptions,
): boolean {
  if (toolName !== "*" && name !== toolName && !(isServer(toolName) && name.startsWith(`${toolName}__`))) return false;
  if (ruleContent === undefined || ruleContent === "" || ruleContent === "*") return true;
  const fields = objectOf(input);
  const field = contentFields.find((field) => typeof fields[field] === "string");
  if (field === undefined) return false;
  const text = String(fields[field]);
  if (field === "command") return matchesCommand(ruleContent, text, parts);
  if (!/path$/.test(field)) return matchesText(ruleContent, text);
  const pattern = ruleContent.replace(/^\/\//, "/");
  return matchesText(pattern, text) || matchesText(absolutePath(cwd, pattern), absolutePath(cwd, text));
}

/** The fields of an input that a rule can be about. */
const contentFields = ["command", "file_path", "notebook_path", "path", "url", "pattern", "query"];

function matchesCommand(content: string, command: string, need: MatchOptions["parts"]): boolean {
  const parts = partsOf(command, /[;|&\n]/);
  if (need === "all") {
    return !/[`<>]|\$\(/.test(command) && parts.length > 0 && parts.every((part) => matchesText(content, part));
  }
  if (need === "maybe" && isOpaque(command)) return true;
  const inner = partsOf(command, /[;|&\n`)]|\$\(/).map((part) => part.replace(opening, ""));
  return [...parts, ...inner].some((part) => matchesText(content, part));
}

/** Whether the shell computes parts of a command, or the command cannot be parsed. */
function isOpaque(command: string): boolean {
  const unquoted = command.replace(/'[^']*'/g, "");
  return /[$`]/.test(unquoted) || /'/.test(unquoted.replace(/"[^"]*"/g, "")) || unquoted.split('"').length % 2 === 0;
}

/** Text before a command in a part: the opening of a group, keywords of the shell, and assignments of variables. */
const opening = /^(?:[({!\s]|(?:if|then|elif|else|while|until|do|time)\s)*(?:\w+=(?:'[^']*'|"[^"]*"|\S*)\s+)*/;

function partsOf(command: string, separator: RegExp): readonly string[] {
  return command.split(separator).map((part) => part.trim()).filter((part) => part !== "");
}

function isServer(name: string): boolean {
  return /^mcp__[^_]+(?:_[^_]+)*$/.test(name);
}

function matchesText(content: string, text: string): boolean {
  if (content.startsWith("domain:")) return URL.parse(text)?.hostname === content.slice("domain:".length);
  if (content.endsWith(":*")) {
    const words = content.slice(0, -2);
    return text === words || text.startsWith(`${words} `);
  }
  const literals = content.split("*").map((literal) => literal.replace(/[\\^$.+?()[\]{}|]/g, "\\$&"));
  const pattern = literals.join(".*");
  return new RegExp(`^${pattern.endsWith(" .*") ? `${pattern.slice(0, -3)}(?: .*)?` : pattern}$`, "s").test(text);
}
