/**
 * The permission rules and the mode that hooks set for a session with `updatedPermissions`.
 *
 * @module
 */
import * as z from "zod";
import { foldCommand, readShell, type ShellScript, unknown } from "./shell.ts";
import { warnFailed } from "../kit/adapter.ts";
import { objectOf } from "../kit/answers.ts";
import type { AnyTool, Scope, State } from "../../../mod.ts";
import { wildcard } from "../../../src/core/kit.ts";

// Rules such as `Bash(git *)`: which calls they match. A rule is about what a call does, however it is spelled. If that cannot be told, a rule that denies or asks matches, and a rule that allows does not.

/** A rule for the calls of a tool. */
interface Rule {
  /** The tool, in which `*` matches every text; `mcp__server` is every tool of that server. */
  readonly toolName: string;
  /**
   * The command, path or address of the call. `*` matches every text, `words:*` matches a text that begins with these words, `domain:name` matches
   * addresses of that host. Paths are relative to the working directory. Default: every call.
   */
  readonly ruleContent?: string | undefined;
}

/** A call. */
interface RuledCall {
  readonly name: string;
  readonly input: unknown;
  /** The tool, whose schema says which field is its command, path or address. Default: every field that could be one counts. */
  readonly tool?: AnyTool | undefined;
  /** The directories that paths may be relative to: the working directory, and the root of the agent's files. */
  readonly folders: readonly string[];
}

/**
 * The use of a rule. One that guards matches a command of which one part matches, and a call that cannot be read. One that allows needs all parts. One that
 * filters is one that guards, and matches also a command that only a shell can evaluate.
 */
type RuleUse = "allow" | "guard" | "filter";

/** Parses `Tool` or `Tool(content)`. */
export function parseRule(text: string): Rule {
  const [, toolName = text, ruleContent] = text.match(/^([^()]+)\((.*)\)$/s) ?? [];
  return { toolName, ruleContent };
}

/** Whether a rule matches a call. */
export function matchesCall(rule: Rule, call: RuledCall, use: RuleUse): boolean {
  const { toolName, ruleContent = "" } = rule.ruleContent === undefined ? parseRule(rule.toolName) : rule;
  if (!matchesTool(toolName, call.name, use)) return false;
  if (ruleContent === "" || ruleContent === "*") return true;
  const { input } = call;
  const fields = objectOf(input);
  const names = fieldsOf(call);
  const matches = (name: string) => matchesField(ruleContent, name, fields[name], { folders: call.folders, use });
  if (use === "allow") return names[0] !== undefined && matches(names[0]);
  return names.every((name) => fields[name] === undefined && !isPath(name)) || names.some(matches);
}

function matchesTool(pattern: string, name: string, use: RuleUse): boolean {
  const isWild = use !== "allow" || pattern === "*" || pattern.startsWith("mcp__");
  if (pattern === name || (isWild && wildcard(pattern)(name))) return true;
  return /^mcp__[^_]+(?:_[^_]+)*$/.test(pattern) && name.startsWith(`${pattern}__`);
}

function isPath(field: string): boolean {
  return field.endsWith("path");
}

/** The fields of an input that a rule can be about, the first of which counts if a tool has several. */
const contentFields = [
  ...["command", "file_path", "notebook_path", "path", "url", "pattern", "query", "subagent_type", "skill"],
];

/** Returns the fields of a call that rules are about: those that its tool declares. */
function fieldsOf({ tool, input }: RuledCall): readonly string[] {
  const properties = objectOf(tool?.definition.schema.properties);
  const declared = contentFields.filter((name) => Object.hasOwn(properties, name));
  return declared.length > 0 ? declared : contentFields.filter((name) => Object.hasOwn(objectOf(input), name));
}

function matchesField(
  content: string,
  name: string,
  value: unknown,
  { folders, use }: Pick<RuledCall, "folders"> & { readonly use: RuleUse },
): boolean {
  if (value === undefined) return isPath(name) && matchesField(content, name, ".", { folders, use }); // tools work in the working directory
  if (typeof value !== "string") return use !== "allow";
  if (name === "command") return matchesCommand(content, value, use);
  if (isPath(name)) {
    const matches = (folder: string) => matchesPath(content, value, folder, use);
    return use === "allow" ? folders.every(matches) : folders.some(matches);
  }
  if (name === "url" || content.startsWith("domain:")) return matchesAddress(content, value, use);
  return patternsOf(content).some((pattern) => wildcard(pattern)(value));
}

/** Returns the patterns in which only `*` is special: `rm:*` and `rm *` match `rm` alone, and `rm` with more words. */
function patternsOf(content: string): readonly string[] {
  const words = content.replace(/(?::| )\*$/, "");
  return words === content ? [content] : [words, `${words} *`];
}

// Rules about commands, such as `Bash(git push *)`: every command that a script runs is compared.

function matchesCommand(content: string, command: string, use: RuleUse): boolean {
  const script = readShell(command);
  if (use === "allow") return allowsScript(content, script);
  if (!script.isComplete) return true;
  if (use === "filter" && (script.hasVariables || (script.hasSubstitutions && !isBare(content)))) return true;
  const patterns = patternsOf(foldCommand(content));
  const folded = patternsOf(foldPaths(foldCommand(content)));
  const written = [command.trim(), ...script.commands.map(({ written }) => written)];
  return [...script.commands.map(({ text }) => text), ...script.reached].some((text) =>
    mayMatch(patterns, text) || (text.includes("/") && mayMatch(folded, foldPaths(text)))
  ) || written.some((text) => matchesOne(patternsOf(content), text));
}

/** Whether a rule allows every command of a script. The folder in a rule is not left through `..`. */
function allowsScript(content: string, { isComplete, isPlain, commands }: ShellScript): boolean {
  if (!isComplete || !isPlain || commands.length === 0) return false;
  const patterns = patternsOf(foldCommand(content));
  const isQuoted = /["'\\]/.test(content);
  const leaves = (text: string) =>
    content.includes("/") && !content.includes("..") && /(?:^|[ /=])\.\.(?:[ /]|$)/.test(text);
  return commands.every(({ text, written }) =>
    matchesOne(patterns, text) && !leaves(text) && (!isQuoted || matchesOne(patternsOf(content), written))
  );
}

function matchesOne(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) => wildcard(pattern)(text));
}

/** Whether a pattern names only a program. Such a pattern can be compared with the commands in substitutions. */
function isBare(content: string): boolean {
  return /^[^\s*]+(?:(?::| )\*)?$/.test(content.trim());
}

/** Returns the words of a command without `.`, `..` and empty names in paths. */
function foldPaths(text: string): string {
  return text.split(" ").map((word) => word.includes("/") ? foldPath(word) : word).join(" ");
}

/** Whether a text matches for some value of its unknown parts. A word that is unknown may be none. */
function mayMatch(patterns: readonly string[], text: string): boolean {
  if (!text.includes(unknown)) return matchesOne(patterns, text);
  const rest = text.split(" ").filter((word) => word.replaceAll(unknown, "") !== "").join(" ");
  return mayFit(patterns, text) || mayFit(patterns, rest);
}

/** Whether a text matches for some value of its unknown parts. What is between two of them is not compared. */
function mayFit(patterns: readonly string[], text: string): boolean {
  const first = text.indexOf(unknown);
  if (first < 0) return matchesOne(patterns, text);
  const start = text.slice(0, first);
  const end = text.slice(text.lastIndexOf(unknown) + 1);
  return patterns.some((pattern) => {
    const [head = "", ...pieces] = pattern.split("*");
    const tail = pieces.pop();
    if (tail === undefined) {
      return pattern.length >= start.length + end.length && pattern.startsWith(start) && pattern.endsWith(end);
    }
    return (head.startsWith(start) || start.startsWith(head)) && (tail.endsWith(end) || end.endsWith(tail));
  });
}

// Rules about paths, such as `Edit(src/*)`: a path is compared in every reading of it.

/** Whether a path matches. A rule that guards matches every reading of a path, and one that allows needs that all readings match. */
function matchesPath(content: string, path: string, cwd: string, use: RuleUse): boolean {
  const isAllow = use === "allow";
  const isUnclear = /\*.*\/\.\.(?:\/|$)/s.test(content); // the parent of any folder
  if (isAllow && (/\p{C}/u.test(path) || isUnclear || content.startsWith("~"))) return false;
  const patterns = pathPatterns(content, cwd, isAllow);
  const readings = readingsOf(path).map((reading) => resolve(cwd, reading));
  if (isAllow) return readings.every((reading) => matchesOne(patterns, reading));
  const folded = patterns.map(fold);
  return isUnclear || readings.some((reading) => matchesOne(folded, fold(reading)));
}

/** Returns the texts that a tool, a file system or a person may take a path for. */
function readingsOf(path: string): readonly string[] {
  const wide = path.normalize("NFKC");
  const decoded = wide.replace(/%([0-9a-f]{2})/gi, (_, code) => String.fromCharCode(parseInt(code, 16)));
  return [path, wide, decoded, decoded.replaceAll("\\", "/")];
}

/** Folds what some file systems do not distinguish. */
function fold(path: string): string {
  return path.normalize("NFKC").toLowerCase();
}

function pathPatterns(content: string, cwd: string, isAllow: boolean): readonly string[] {
  const path = content.replace(/^\/\//, "/");
  const home = /^~(?=\/)/;
  const resolved = [resolve(cwd, path.replace(home, "/*"))];
  if (!isAllow && /^\/[^/]/.test(content)) resolved.push(resolve(cwd, `.${content}`)); // relative to the project
  const shallow = resolved.flatMap((pattern) =>
    pattern.includes("/**/") ? [pattern, pattern.replaceAll("/**/", "/")] : [pattern]
  );
  return isAllow ? shallow : shallow.flatMap((pattern) => [pattern, `${pattern === "/" ? "" : pattern}/*`]); // a folder is all that is in it
}

/** Returns an absolute path without `.`, `..` and empty names. */
function resolve(cwd: string, path: string): string {
  return foldPath(path.startsWith("/") ? path : `/${cwd}/${path}`);
}

/** Removes `.`, `..` and empty names from a path. */
function foldPath(path: string): string {
  const root = path.startsWith("/") ? "/" : "";
  const names: string[] = [];
  for (const name of path.split("/")) {
    const isUp = name === "..";
    if (isUp && names.length > 0 && names.at(-1) !== "..") names.pop();
    else if (name !== "" && name !== "." && !(isUp && root)) names.push(name);
  }
  return root + names.join("/");
}

// Rules about addresses, such as `WebFetch(domain:example.com)`: the host is compared, not its spelling.

function matchesAddress(content: string, text: string, use: RuleUse): boolean {
  const isAllow = use === "allow";
  const isWhole = isAllow || /^\s*https?:/i.test(text); // tools may add what is missing
  const address = addressOf(text) ?? (isWhole ? undefined : addressOf(`https://${text.replace(/^[\s/]+/, "")}`));
  if (!address || (isAllow && (/[\s\p{C}]/u.test(text) || address.username !== "" || address.password !== ""))) {
    return !isAllow;
  }
  if (content.startsWith("domain:")) return matchesHost(content.slice("domain:".length), address, isAllow);
  const pattern = content.replace(/^[a-z][\w+.-]*:\/*[^/?#]*/i, (start) => start.toLowerCase());
  const { protocol, port, pathname, search } = address;
  const written = `${protocol}//${hostOf(address)}${port && `:${port}`}${pathname}${search}`;
  return matchesOne(patternsOf(pattern), written) || (!isAllow && matchesOne(patternsOf(content), text));
}

/** Parses an address; undefined if programs could disagree about its host. */
function addressOf(text: string): URL | undefined {
  const address = text.includes("\\") ? null : URL.parse(text);
  return address?.hostname ? address : undefined;
}

function matchesHost(pattern: string, address: URL, isAllow: boolean): boolean {
  const expected = URL.parse(`https://${pattern}`);
  if (isAllow && expected && expected.port !== "" && expected.port !== address.port) return false;
  const name = pattern.includes("*") || !expected ? pattern.toLowerCase().replace(/\.+$/, "") : hostOf(expected);
  return wildcard(name)(hostOf(address));
}

/** Returns the host of an address. A dot at its end means the same host. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/\.+$/, "");
}

// The rules and the mode of a session, which `updatedPermissions` changes.

/** A mode, and rules. */
interface Permissions {
  /**
   * Decides about calls that no hook and no rule decides: `bypassPermissions` and `yolo` allow them, `dontAsk` denies them, and in every other mode a person
   * is asked.
   */
  readonly mode: string;
  readonly rules: readonly BehaviorRule[];
}

/** The permissions of a new session. */
export const noPermissions: Permissions = { mode: "default", rules: [] };

type Behavior = "allow" | "ask" | "deny";

/** A rule, and its decision. */
export interface BehaviorRule extends Rule {
  readonly behavior: Behavior;
}

const rules = z.array(z.object({ toolName: z.string(), ruleContent: z.string().optional() }));
const behavior = z.enum(["allow", "ask", "deny"]);
/** A change, for every destination. Every change holds for this session. */
const changes = z.discriminatedUnion("type", [
  z.object({ type: z.enum(["addRules", "replaceRules", "removeRules"]), rules, behavior }),
  z.object({ type: z.literal("setMode"), mode: z.string() }),
  z.object({ type: z.enum(["addDirectories", "removeDirectories"]) }),
]);

/** Applies changes. An invalid change is skipped with a warning. */
export function applyUpdates(
  kept: State<Permissions>,
  ctx: Scope,
  updates: readonly unknown[],
  middleware: string,
): void {
  for (const requested of updates) {
    const { data } = changes.safeParse(requested);
    if (data) kept.update(ctx, (permissions) => applied(permissions, data));
    else {
      const message = "A hook of PermissionRequest returned an invalid output: unknown change in updatedPermissions.";
      warnFailed(ctx, { middleware, point: "approval", message });
    }
  }
}

function applied(permissions: Permissions, update: z.output<typeof changes>): Permissions {
  if (update.type === "setMode") return { ...permissions, mode: update.mode };
  if (!("rules" in update)) return permissions; // a workspace has one root
  const { rules } = permissions;
  const { type, behavior } = update;
  const newRules = update.rules.map((rule) => ({ ...rule, behavior }));
  if (type === "addRules") return { ...permissions, rules: [...rules, ...newRules] };
  if (type === "replaceRules") {
    return { ...permissions, rules: [...rules.filter((rule) => rule.behavior !== behavior), ...newRules] };
  }
  const removed = newRules.map(keyOf);
  return { ...permissions, rules: rules.filter((rule) => !removed.includes(keyOf(rule))) };
}

function keyOf({ toolName, ruleContent = "", behavior }: BehaviorRule): string {
  return JSON.stringify([toolName, ruleContent, behavior]);
}

/** Returns the strictest rule that matches a call; undefined if none matches. */
export function rulingOf({ rules }: Permissions, call: RuledCall): BehaviorRule | undefined {
  const order = ["deny", "ask", "allow"] as const;
  const matching = rules.filter((rule) => matchesCall(rule, call, rule.behavior === "allow" ? "allow" : "guard"));
  return order.flatMap((behavior) => matching.filter((rule) => rule.behavior === behavior))[0];
}
