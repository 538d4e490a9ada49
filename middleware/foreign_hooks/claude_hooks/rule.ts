/**
 * Rules: which calls are meant, as `Bash(git *)` says it.
 *
 * @module
 */

/** A tool's calls, or those of them whose content `ruleContent` describes. */
export interface Rule {
  /** The tool; `mcp__server` is every tool of that server. */
  readonly toolName: string;
  /**
   * What the call is about: a command, a path, an address. `*` stands for any characters, `words:*` for what begins with these words, and
   * `domain:name` for addresses of that host. Default: anything.
   */
  readonly ruleContent?: string | undefined;
}

/** Reads `Tool`, or `Tool(content)`. */
export function ruleOf(text: string): Rule {
  const [, toolName = text, ruleContent] = text.match(/^([^()]+)\((.*)\)$/s) ?? [];
  return { toolName, ruleContent };
}

/**
 * Whether a rule means a call. A shell command is many: with `every` all of its parts have to be meant, as where something is allowed. Else one of them is
 * enough, also one whose output another is given, or for which variables are set.
 */
export function means(
  { toolName, ruleContent }: Rule,
  name: string,
  input: unknown,
  { every }: { every: boolean },
): boolean {
  if (toolName !== "*" && name !== toolName && !(isServer(toolName) && name.startsWith(`${toolName}__`))) return false;
  if (ruleContent === undefined || ruleContent === "" || ruleContent === "*") return true;
  const { text, isCommand } = contentOf(input);
  if (text === undefined) return false;
  if (!isCommand) return fits(ruleContent, text);
  const parts = partsOf(text, /[;|&\n]/);
  if (!every) {
    const inner = partsOf(text, /[;|&\n`)]|\$\(/).map((part) => part.replace(opening, ""));
    return [...parts, ...inner].some((part) => fits(ruleContent, part));
  }
  return !/[`<>]|\$\(/.test(text) && parts.length > 0 && parts.every((part) => fits(ruleContent, part));
}

/** What may stand before a command: the opening of a group, words of the shell, and variables that are set for it. */
const opening = /^(?:[({!\s]|(?:if|then|elif|else|while|until|do|time)\s)*(?:\w+=(?:'[^']*'|"[^"]*"|\S*)\s+)*/;

function partsOf(command: string, separator: RegExp): readonly string[] {
  return command.split(separator).map((part) => part.trim()).filter((part) => part !== "");
}

function isServer(name: string): boolean {
  return /^mcp__[^_]+(?:_[^_]+)*$/.test(name);
}

/** What a call is about. */
function contentOf(input: unknown): { readonly text: string | undefined; readonly isCommand: boolean } {
  const fields: Readonly<Record<string, unknown>> = typeof input === "object" && input !== null ? { ...input } : {};
  const name = ["command", "file_path", "notebook_path", "path", "url", "pattern", "query"]
    .find((name) => typeof fields[name] === "string");
  return { text: name && String(fields[name]), isCommand: name === "command" };
}

function fits(content: string, text: string): boolean {
  if (content.startsWith("domain:")) return URL.parse(text)?.hostname === content.slice("domain:".length);
  if (content.endsWith(":*")) {
    const words = content.slice(0, -2);
    return text === words || text.startsWith(`${words} `);
  }
  const literals = content.split("*").map((literal) => literal.replace(/[\\^$.+?()[\]{}|]/g, "\\$&"));
  const pattern = literals.join(".*");
  return new RegExp(`^${pattern.endsWith(" .*") ? `${pattern.slice(0, -3)}(?: .*)?` : pattern}$`, "s").test(text);
}
