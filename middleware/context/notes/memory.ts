/**
 * The memory tool that Claude knows: a directory of files that outlives a session, kept as notes.
 *
 * @module
 */
import { type AnyTool, failed, type Middleware, type Scope, tool, type ToolResult } from "../../../mod.ts";
import {
  cancellationOf,
  expectCount,
  expectNames,
  type KeyValue,
  Locks,
  schemaOf,
  type ToolOperation,
  type Validation,
} from "../../../src/core/kit.ts";
import { exclusively, type Note, type NoteStore, noteStore, requiredOwner, type ToolContext } from "./store.ts";
export type { KeyValue } from "../../../src/core/kit.ts";

// Paths. They are names in the store and reach no file system. Other spellings of a path are refused, so that a guard that compares paths sees each file
// under one name.

const root = "/memories";

/** The number of characters of a path. */
const maxPath = 256;

/** Matches the root and the paths below it: no empty segment, `.`, `..`, backslash or control character. */
const pathPattern = /^\/memories(\/(?!\.{1,2}(\/|$))[^/\\\p{Cc}\p{Cs}]+)*$/u;

/** Whether a text is a path of the memory. An encoded separator or dot would become one where it is decoded. */
function isPath(path: string): boolean {
  return path.length <= maxPath && pathPattern.test(path) && !/%(2e|2f|5c)/i.test(path);
}

/** Whether a path is `directory`, or below it. */
function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(`${directory}/`);
}

// Files. The first line of a note is the path of its file, so the tools of `notes()` show it too. Any other note is a file named after its number.

interface MemoryFile {
  /** The number of its note. */
  readonly id: number;
  readonly path: string;
  readonly text: string;
}

function fileOf({ id, text }: Note): MemoryFile {
  const path = text.slice(0, maxPath + 1).split("\n")[0] ?? "";
  const isFile = isPath(path) && path !== root;
  return isFile ? { id, path, text: text.slice(path.length + 1) } : { id, path: `${root}/note_${id}.txt`, text };
}

function noteOf({ id, path, text }: MemoryFile): Note {
  return { id, text: `${path}\n${text}` };
}

/** Returns lines with their numbers, as Claude expects them. `first` is the number of the first one. */
function numbered(lines: readonly string[], first: number): string {
  return lines.map((line, index) => `${`${first + index}`.padStart(6)}\t${line}`).join("\n");
}

/** Returns the size of texts, such as `1.5K`. */
function sizeOf(files: readonly MemoryFile[]): string {
  const encoder = new TextEncoder();
  let size = files.reduce((sum, { text }) => sum + encoder.encode(text).length, 0);
  let unit = 0;
  for (; size >= 1024; unit++) size /= 1024;
  return `${Number.isInteger(size) ? size : size.toFixed(1)}${"BKMG"[unit]}`;
}

/** Lists a directory, two levels deep, without hidden files. */
function listing(directory: string, files: readonly MemoryFile[]): string {
  const paths = new Set<string>();
  for (const { path } of files) {
    const segments = path.slice(directory.length + 1).split("/");
    for (let depth = 1; depth <= Math.min(segments.length, 2); depth++) {
      const shown = segments.slice(0, depth);
      if (shown.some((segment) => segment.startsWith(".") || segment === "node_modules")) break;
      paths.add([directory, ...shown].join("/"));
    }
  }
  const lines = [...paths].toSorted().map((path) => {
    const inside = files.filter((file) => isWithin(file.path, path));
    return `${sizeOf(inside)}\t${path}${inside.some((file) => file.path !== path) ? "/" : ""}`;
  });
  const header =
    `Here're the files and directories up to 2 levels deep in ${directory}, excluding hidden items and node_modules:`;
  return [header, `${sizeOf(files)}\t${directory}`, ...lines].join("\n");
}

// The commands. Their answers are worded as the specification of the tool recommends.

/** The input of a call. A field that its command does not have is empty. */
interface Command {
  readonly command: keyof typeof requiredFields;
  readonly path: string;
  readonly view_range?: readonly [first: number, last: number];
  readonly file_text: string;
  readonly old_str: string;
  readonly new_str: string;
  readonly insert_line: number;
  readonly insert_text: string;
  readonly old_path: string;
  readonly new_path: string;
}

/** The fields that each command needs. */
const requiredFields = {
  view: ["path"],
  create: ["path", "file_text"],
  str_replace: ["path", "old_str"],
  insert: ["path", "insert_line", "insert_text"],
  delete: ["path"],
  rename: ["old_path", "new_path"],
} as const;

const text = { type: "string" } as const;

const inputSchema = {
  type: "object",
  properties: {
    command: { type: "string", enum: Object.keys(requiredFields) },
    path: { ...text, description: "Path below /memories. For every command but rename." },
    view_range: {
      type: "array",
      items: { type: "integer" },
      minItems: 2,
      maxItems: 2,
      description: "First and last line to view, from 1; -1 is the last line of the file. Default: all lines.",
    },
    file_text: { ...text, description: "The text of a created file." },
    old_str: { ...text, description: "The text that str_replace replaces. It must occur once." },
    new_str: { ...text, description: "The text in its place. Default: none, which deletes it." },
    insert_line: {
      type: "integer",
      description: "The line after which insert inserts; 0 is the beginning of the file.",
    },
    insert_text: { ...text, description: "The text that insert inserts." },
    old_path: { ...text, description: "Path to rename." },
    new_path: { ...text, description: "The new path." },
  },
  required: ["command"],
};

function parse(value: unknown): Validation<Command> {
  const fields = { ...Object(value) };
  const issue = (message: string) => ({ issues: [{ message }] });
  if (!Object.hasOwn(requiredFields, fields.command)) {
    return issue(`expected \`command\`, one of ${Object.keys(requiredFields).join(", ")}`);
  }
  if (fields.command === "view" && fields.path === `${root}/`) fields.path = root;
  const command: Command["command"] = fields.command;
  for (const name of requiredFields[command]) {
    const value = fields[name];
    const expected = name === "insert_line" ? "a number" : "a text";
    if (expected !== (typeof value === "number" ? "a number" : typeof value === "string" ? "a text" : "")) {
      return issue(`expected \`${name}\`, ${expected}`);
    }
    if (name.endsWith("path") && !isPath(value)) {
      return issue(`expected \`${name}\`, ${root} or a path below it without empty segments, "." or ".."`);
    }
  }
  const { view_range: range, old_str: old, new_str: replacement = "" } = fields;
  if (range !== undefined && !(Array.isArray(range) && range.length === 2 && range.every(Number.isInteger))) {
    return issue("expected `view_range`, two whole numbers");
  }
  if (fields.command === "str_replace" && (old === "" || typeof replacement !== "string")) {
    return issue("expected `old_str` with at least one character, and a text in `new_str`");
  }
  return { value: { ...fields, new_str: replacement } };
}

/** The bounds of a memory. */
interface MemoryBounds {
  /** Number of files that one owner may have. */
  readonly max: number;
  /** Number of characters of one file. */
  readonly maxLength: number;
}

/** The files of one owner. */
class Memory {
  readonly #store: NoteStore;
  readonly #owner: string;
  readonly #bounds: MemoryBounds;
  #files: readonly MemoryFile[] = [];

  constructor(store: NoteStore, owner: string, bounds: MemoryBounds) {
    this.#store = store;
    this.#owner = owner;
    this.#bounds = bounds;
  }

  /** Runs a command, and returns its answer. */
  async run(command: Command): Promise<string | ToolResult> {
    this.#files = (await this.#store.list(this.#owner)).map(fileOf);
    return await this[command.command](command);
  }

  view({ path, view_range: [start, end] = [1, -1] }: Command): string | ToolResult {
    const file = this.#at(path);
    if (!file) {
      const files = this.#within(path);
      if (files.length > 0 || path === root) return listing(path, files);
      return failed(`The path ${path} does not exist. Please provide a valid path.`);
    }
    const first = Math.max(1, start);
    const lines = file.text.split("\n").slice(first - 1, end === -1 ? undefined : Math.max(0, end));
    return `Here's the content of ${path} with line numbers:\n${numbered(lines, first)}`;
  }

  async create({ path, file_text: text }: Command): Promise<string | ToolResult> {
    if (this.#exists(path)) return failed(`Error: File ${path} already exists`);
    const refused = this.#refusal(path, text);
    if (refused) return refused;
    const id = await this.#store.add(this.#owner, noteOf({ id: 0, path, text }).text);
    if (id !== undefined) return `File created successfully at: ${path}`;
    return failed(`Error: File ${path} cannot be created: there are ${this.#bounds.max} files. Delete one first.`);
  }

  async str_replace({ path, old_str: old, new_str: replacement }: Command): Promise<string | ToolResult> {
    const file = this.#at(path);
    if (!file) return failed(`Error: The path ${path} does not exist. Please provide a valid path.`);
    const [before = "", ...parts] = file.text.split(old);
    if (parts.length === 0) {
      return failed(`No replacement was performed, old_str \`${old}\` did not appear verbatim in ${path}.`);
    }
    if (parts.length > 1) {
      const lines = parts.map((_, index) => [before, ...parts].slice(0, index + 1).join(old).split("\n").length);
      const places = `${[...new Set(lines)].join(", ")}. Please ensure it is unique`;
      return failed(`No replacement was performed. Multiple occurrences of old_str \`${old}\` in lines: ${places}`);
    }
    const text = `${before}${replacement}${parts[0]}`;
    const line = before.split("\n").length - 1;
    const first = Math.max(0, line - 2);
    const snippet = text.split("\n").slice(first, line + replacement.split("\n").length + 2);
    const answer = "The memory file has been edited. Here is the snippet showing the change (with line numbers):";
    return await this.#write({ ...file, text }) ?? `${answer}\n${numbered(snippet, first + 1)}`;
  }

  async insert({ path, insert_line: line, insert_text: text }: Command): Promise<string | ToolResult> {
    const file = this.#at(path);
    if (!file) return missing(path);
    const lines = file.text.split("\n");
    if (!Number.isInteger(line) || line < 0 || line > lines.length) {
      const range = `It should be within the range of lines of the file: [0, ${lines.length}]`;
      return failed(`Error: Invalid \`insert_line\` parameter: ${line}. ${range}`);
    }
    const inserted = lines.toSpliced(line, 0, text.replace(/\n$/, "")).join("\n");
    return await this.#write({ ...file, text: inserted }) ?? `The file ${path} has been edited.`;
  }

  async delete({ path }: Command): Promise<string | ToolResult> {
    if (path === root) return failed(`Error: The directory ${root} itself cannot be deleted.`);
    if (!this.#exists(path)) return missing(path);
    for (const { id } of this.#within(path)) await this.#store.delete(this.#owner, id);
    return `Successfully deleted ${path}`;
  }

  async rename({ old_path: from, new_path: to }: Command): Promise<string | ToolResult> {
    if (from === root) return failed(`Error: The directory ${root} itself cannot be renamed.`);
    if (!this.#exists(from)) return missing(from);
    if (this.#exists(to)) return failed(`Error: The destination ${to} already exists`);
    const moved = this.#within(from).map((file) => ({ ...file, path: to + file.path.slice(from.length) }));
    for (const { path, text } of moved) {
      const refused = this.#refusal(path, text);
      if (refused) return refused;
    }
    for (const file of moved) await this.#write(file);
    return `Successfully renamed ${from} to ${to}`;
  }

  /** Returns the file at a path. */
  #at(path: string): MemoryFile | undefined {
    return this.#files.find((file) => file.path === path);
  }

  /** Returns the file at a path, or the files of a directory. */
  #within(path: string): readonly MemoryFile[] {
    return this.#files.filter((file) => isWithin(file.path, path));
  }

  #exists(path: string): boolean {
    return path === root || this.#within(path).length > 0;
  }

  /** Returns the reason why a file cannot be at a path, or is too long. */
  #refusal(path: string, text: string): ToolResult | undefined {
    const { maxLength } = this.#bounds;
    if (!isPath(path)) return failed(`Error: The path ${path} has more than ${maxPath} characters.`);
    const parent = this.#files.find((file) => path.startsWith(`${file.path}/`));
    if (parent) return failed(`Error: The path ${parent.path} is a file, not a directory`);
    if (text.length <= maxLength) return undefined;
    const size = `${text.length} characters, and may have ${maxLength}`;
    return failed(`Error: File ${path} would have ${size}. Shorten it, or keep a part of it in another file.`);
  }

  /** Stores a file in place of the one that its note contains. Returns the reason if it cannot. */
  async #write(file: MemoryFile): Promise<ToolResult | undefined> {
    const refused = this.#refusal(file.path, file.text);
    if (refused || await this.#store.replace(this.#owner, noteOf(file))) return refused;
    return missing(file.path); // it has expired meanwhile
  }
}

function missing(path: string): ToolResult {
  return failed(`Error: The path ${path} does not exist`);
}

// The middleware `memory()`, and its options.

/** Options of `memory()`. */
export interface MemoryOptions<V = unknown> {
  /** The database of the files. */
  readonly keyValue: KeyValue;
  /** Returns the owner of the files. Default: the owner of the session. */
  readonly owner?: (scope: Scope<V>) => string | undefined | Promise<string | undefined>;
  /** Number of files that one owner may have. Default: 100. */
  readonly max?: number;
  /** Number of characters of one file. Default: 16,000. */
  readonly maxLength?: number;
  /** Milliseconds after which a file is deleted unless it is written again. Default: never. */
  readonly expireIn?: number;
}

/**
 * Gives the model the tool `memory`: a directory `/memories` of text files that belongs to the owner of the session and outlives it. The model views, creates,
 * edits, renames and deletes files in it. Claude 4 and later receive Anthropic's own memory tool (`memory_20250818`), which these models are trained on;
 * other models receive the same tool with a description and a schema.
 *
 * Each command is a call, which guards see and hooks can change. A file is a note of `notes()`, with its path in the first line: both can use one
 * database, and the notes of an owner are files for `memory()`. Paths outside of `/memories` are refused; no path reaches a file system.
 *
 * Files of one owner are never shown to another. Without an owner, or if it is an empty text, calls fail: on a server set `owner` of `serve()`, and elsewhere
 * `owner` of the run or of `memory()`. Throws a `RangeError` if `max` or `maxLength` is not a whole number of 1 or more.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { memory } from "@jizai/jizai/middleware/notes/memory";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { memoryKeyValue } from "@jizai/jizai/session/key_value";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const path = "/memories/drinks.md";
 * const model = scripted(
 *   { calls: [["memory", { command: "create", path, file_text: "Prefers tea" }]] },
 *   "Noted.",
 *   { calls: [["memory", { command: "view", path }]] },
 *   "Tea, I know.",
 * );
 * const assistant = agent({ model, use: [memory({ keyValue: memoryKeyValue() })] });
 *
 * await assistant.run({ prompt: "I prefer tea", owner: "ada" }).result;
 * await assistant.run({ prompt: "A drink, please", owner: "ada" }).result; // a new session
 * assertStringIncludes(JSON.stringify(model.requests[3]?.messages), "Prefers tea");
 * ```
 */
export function memory<V = unknown>(options: MemoryOptions<V>): Middleware<V> {
  const subject = "Cannot create memory()";
  expectNames(subject, options, ["keyValue", "owner", "max", "maxLength", "expireIn"]);
  const { keyValue, owner = ({ run }) => run.owner, max = 100, maxLength = 16_000, expireIn } = options;
  expectCount(subject, { max, maxLength });
  const store = noteStore({ keyValue, max, expireIn });
  const locks = new Locks();

  const plain: AnyTool<V> = tool({
    name: "memory",
    description:
      "Views and edits your memory: text files below /memories, which are kept across conversations. View /memories before you begin a task, and keep there what later conversations need. Keep it short and in order.",
    input: schemaOf(inputSchema, parse),
    parallel: (input) => Object(input).command === "view",
    operation: operationOf,
    async execute(command, ctx: ToolContext<V>) {
      const name = await requiredOwner(owner, ctx);
      const run = () => new Memory(store, name, { max, maxLength }).run(command);
      if (command.command === "view") return await run();
      return await locks.hold(name, cancellationOf(ctx.signal), () => exclusively(keyValue, name, run));
    },
  });
  const apis = { anthropic: { type: "memory_20250818", name: "memory" } };
  return { name: "memory", tools: [{ ...plain, definition: { ...plain.definition, apis } }] };
}

const operations = { view: "search", create: "create", delete: "delete" } as const;

function operationOf({ command, path, old_path }: Command): ToolOperation {
  const name = command === "view" || command === "create" || command === "delete" ? operations[command] : "update";
  return { type: `${name}_memory`, record: command === "rename" ? old_path : path };
}
