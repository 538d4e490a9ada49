/**
 * Defines the tools that read and change files.
 *
 * @module
 */
import { RE2JS, RE2JSException } from "re2js";
import * as z from "zod";
import { type FileEditor, textOf } from "./file_editor.ts";
import { decode, finder, linesIn, replaceOnce, resolve, root, shown, walk, type WalkEntry } from "./path.ts";
import { type AnyTool, type Scope, tool, ToolError, type ToolExecutionContext } from "../../../mod.ts";
import { delay } from "../../../src/core/kit.ts";

// Searches lines for a text or a regular expression, in linear time and in slices.

const maxPatternLength = 1_000;
/** Instructions of a compiled pattern. */
const maxProgramSize = 1_000;
/** Characters of a line that is matched with a regular expression. It takes up to half a second, and cannot be interrupted. */
const maxMatchedLength = 20_000;
/** Cost of one search in characters. All parts of a search together take less than two seconds. */
const maxCost = 12_000_000;
/** Cost after which a search lets other work of the process run. It takes less than a tenth of a second, unless one line takes longer. */
const maxSlice = 500_000;
/** Characters that cost as much as one more line. */
const charactersPerLine = 8;
/** Bytes of a file that cost as much as a character. */
const bytesPerCharacter = 8;
/** Characters that cost as much as a millisecond of matching. Few patterns need more time than that. */
const charactersPerMs = 10_000;

/** A search with a bounded cost. */
type Search = ReturnType<typeof search>;

/** Starts a search for `pattern`, a literal text or a regular expression. Throws a `ToolError` if the pattern is empty, invalid or too complex. */
function search(pattern: string, regex: boolean) {
  if (pattern === "") throw new ToolError("Cannot search: `pattern` is empty.");
  const test = regex ? regexMatcher(pattern) : literalMatcher(pattern);
  const longest = regex ? maxMatchedLength : Infinity;
  const now = regex ? () => performance.now() : () => 0; // a literal text takes no longer than its characters cost
  let left = maxCost;
  let sliceEnd = maxCost - maxSlice;
  let skipped = false;
  return {
    /** Returns the part of a file's bytes that the search can reach. */
    reachable(bytes: Uint8Array): Uint8Array {
      const reached = bytes.subarray(0, 3 * Math.max(0, left) + 3); // UTF-8 has at most three bytes for a character of JavaScript
      left -= reached.length / bytesPerCharacter;
      return reached;
    },
    /** Returns whether a line matches; false once the search is exhausted. */
    matches(line: string): boolean {
      left -= line.length + charactersPerLine;
      const isTooLong = line.length > longest;
      skipped ||= isTooLong;
      if (left < 0 || isTooLong) return false;
      const start = now();
      const found = test(line);
      left -= (now() - start) * charactersPerMs;
      return found;
    },
    /** Returns whether the search has reached its cost limit. */
    exhausted: (): boolean => left < 0,
    /** Returns true once for each slice: it is time to let other work run. */
    sliced(): boolean {
      if (left > sliceEnd) return false;
      sliceEnd = left - maxSlice;
      return true;
    },
    /** Returns whether a line was too long to match. */
    skipped: (): boolean => skipped,
  };
}

function literalMatcher(text: string): (line: string) => boolean {
  const find = finder(text);
  return (line) => line.length >= text.length && find(line).next().done === false;
}

/** Compiles a pattern for RE2, whose matching time is proportional to the length of the line times the size of the pattern. */
function regexMatcher(pattern: string): (line: string) => boolean {
  if (pattern.length > maxPatternLength) {
    throw new ToolError(`Cannot search: \`pattern\` is too long; expected at most ${maxPatternLength} characters.`);
  }
  const compiled = compile(pattern);
  if (compiled.programSize() > maxProgramSize) {
    throw new ToolError("Cannot search: `pattern` is too complex; expected fewer repetitions.");
  }
  return (line) => compiled.test(line);
}

function compile(pattern: string): RE2JS {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause;
    const reason = cause.message.replace(/^error parsing regexp: /, "");
    throw new ToolError(`Cannot search: ${reason}; expected the syntax of RE2.`, { cause });
  }
}

// Defines the tools that read: `read_file`, `list_files` and `search_files`.

/** Characters that one call of `read_file` returns. */
const maxCharacters = 50_000;
/** Entries that one call of `list_files` returns. */
const maxListed = 1_000;
/** Files and folders that one search visits. */
const maxVisited = 10_000;
/** Lines that one search returns. */
const maxMatches = 100;
/** Characters that a search returns of one line. */
const maxLineLength = 300;

/** Creates the tools; `editorOf` returns the editor of a run. */
export function readingTools<V>(editorOf: EditorOf<V>): readonly AnyTool<V>[] {
  return [readFile(editorOf), listFiles(editorOf), searchFiles(editorOf)];
}

/** Returns the editor of a run. */
type EditorOf<V> = (scope: Scope<V>) => FileEditor;

function readFile<V>(editorOf: EditorOf<V>): AnyTool<V> {
  return tool({
    name: "read_file",
    description: "Reads a text file, or some of its lines.",
    input: z.object({
      path: z.string().describe("The file"),
      from: z.int().min(1).nullish().describe("The first line to read. Default: 1"),
      lines: z.int().min(1).nullish().describe("The number of lines to read. Default: 2000"),
    }),
    async execute({ path, from, lines }, ctx: ToolExecutionContext<V>) {
      const file = resolve(root, path);
      return excerpt(file, await editorOf(ctx).read(file, ctx), from ?? 1, lines ?? 2_000);
    },
  });
}

function listFiles<V>(editorOf: EditorOf<V>): AnyTool<V> {
  return tool({
    name: "list_files",
    description: "Lists the entries of a folder. The names of folders end in /.",
    input: z.object({
      path: z.string().describe("The folder; . is the current one"),
      deep: z.boolean().nullish().describe("Whether to list the folders in it too. Default: false"),
    }),
    async execute({ path, deep }, ctx: ToolExecutionContext<V>) {
      const folder = resolve(root, path);
      const { files } = editorOf(ctx);
      if ((await files.stat(folder))?.type !== "folder") {
        throw new ToolError(`Cannot list ${shown(folder)}: there is no such folder.`);
      }
      const listed: string[] = [];
      for await (const { path, type } of walk(files, folder, deep ?? false)) {
        ctx.signal.throwIfAborted();
        if (listed.length === maxListed) return lines(listed, `Only the first ${maxListed} entries are listed.`);
        listed.push(relative(folder, path) + (type === "folder" ? "/" : ""));
      }
      return lines(listed, listed.length === 0 ? "The folder is empty." : undefined);
    },
  });
}

function searchFiles<V>(editorOf: EditorOf<V>): AnyTool<V> {
  return tool({
    name: "search_files",
    description: "Finds the lines of a file, or of all files in a folder, that contain a text or match a pattern.",
    input: z.object({
      path: z.string().describe("The file or folder; . is the current folder"),
      pattern: z.string().describe("The text or the regular expression to find"),
      regex: z.boolean().nullish().describe("Whether `pattern` is a regular expression (RE2 syntax). Default: false"),
    }),
    async execute({ path, pattern, regex }, ctx: ToolExecutionContext<V>) {
      const searched = search(pattern, regex ?? false);
      const editor = editorOf(ctx);
      const start = resolve(root, path);
      const matched: string[] = [];
      let visited = 0;
      for await (const entry of entriesAt(editor, start)) {
        ctx.signal.throwIfAborted();
        if (++visited > maxVisited) {
          return lines(matched, `Only the first ${maxVisited} files and folders were searched; search a folder in it.`);
        }
        let number = 0;
        for (const line of await linesOf(editor, entry, searched)) {
          number++;
          if (searched.matches(line)) matched.push(`${relative(start, entry.path, ":")}${number}: ${clipped(line)}`);
          if (searched.exhausted() || matched.length === maxMatches) break;
          if (searched.sliced()) await delay(0, ctx.signal);
        }
        if (matched.length === maxMatches) return lines(matched, `Only the first ${maxMatches} matches are shown.`);
        if (searched.exhausted()) break;
        if (searched.sliced()) await delay(0, ctx.signal); // a file that is not text has a cost too
      }
      return lines(matched, remarkOf(searched, matched.length));
    },
  });
}

/** Returns the remark at the end of a search. */
function remarkOf({ exhausted, skipped }: Search, count: number): string | undefined {
  if (exhausted()) return "Only a part of the text was searched; search a folder or file in it.";
  if (skipped()) {
    return `Lines of more than ${maxMatchedLength} characters were not matched; search for a literal text.`;
  }
  return count === 0 ? "No line matches." : undefined;
}

/** Returns some lines of a file. A remark says which lines they are unless they are the whole file. */
function excerpt(path: string, text: string, from: number, count: number): string {
  const all = text.split("\n");
  if (all.at(-1) === "") all.pop();
  if (all.length === 0) return lines([], "The file is empty.");
  if (from > all.length) {
    throw new ToolError(`Cannot read ${shown(path)} from line ${from}: it has ${all.length} lines.`);
  }
  const selected = all.slice(from - 1, from - 1 + count).join("\n");
  const returned = selected.slice(0, maxCharacters).toWellFormed();
  const last = from - 1 + returned.split("\n").length;
  const isCut = returned !== selected;
  if (from === 1 && last === all.length && !isCut) return text;
  return lines([returned], `Lines ${from} to ${last} of ${all.length}${isCut ? "; the last one is cut" : ""}.`);
}

/** Joins lines for the model, followed by a remark in brackets. */
function lines(all: readonly string[], remark: string | undefined): string {
  return [...all, ...remark === undefined ? [] : [`[${remark}]`]].join("\n");
}

/** Returns a path relative to the file or folder at which the tool started. */
function relative(start: string, path: string, end = ""): string {
  if (path === start) return "";
  return (start === root ? path : path.slice(start.length + 1)) + end;
}

/** Yields the file at a path, or everything in the folder at it. */
async function* entriesAt({ files }: FileEditor, path: string): AsyncIterable<WalkEntry> {
  const stat = await files.stat(path);
  if (!stat) throw new ToolError(`Cannot search ${shown(path)}: there is no such file or folder.`);
  if (stat.type === "file") yield { path, type: stat.type };
  else yield* walk(files, path, true);
}

/** Returns the lines of a file that a search can still read; none for a folder, and for a file that is too large or is not text. */
async function linesOf(
  { files, maxBytes }: FileEditor,
  { path, type }: WalkEntry,
  searched: Search,
): Promise<Iterable<string>> {
  if (type === "folder") return [];
  const stat = await files.stat(path);
  const file = stat?.type === "file" && stat.size <= maxBytes ? await files.read(path) : undefined;
  if (!file) return [];
  const text = decode(searched.reachable(file.bytes), { cut: true });
  return text === undefined ? [] : linesIn(text);
}

function clipped(line: string): string {
  return line.length > maxLineLength ? `${line.slice(0, maxLineLength).toWellFormed()}…` : line;
}

// Defines the tools that change files: `write_file` and `edit_file`.

/** Creates the tools; `editorOf` returns the editor of a run. */
export function writingTools<V>(editorOf: (scope: Scope<V>) => FileEditor): readonly AnyTool<V>[] {
  const writeFile = tool({
    name: "write_file",
    description: "Writes a text file, and creates its folders. Replaces the previous content of the file.",
    input: z.object({
      path: z.string().describe("The file"),
      content: z.string().describe("The whole content of the file"),
    }),
    async execute({ path, content }, ctx: ToolExecutionContext<V>) {
      const change = await editorOf(ctx).change(resolve(root, path), () => content, ctx);
      return change === "add" ? "Created." : change ? "Replaced." : "Unchanged: the file has this content already.";
    },
  });

  const editFile = tool({
    name: "edit_file",
    description: "Replaces a text in a file with another text. Several edits of one file run in order.",
    input: z.object({
      path: z.string().describe("The file"),
      old: z.string().describe("The text to replace, exactly as in the file, and long enough to occur once"),
      new: z.string().describe("The text to insert instead"),
    }),
    async execute({ path, old, new: by }, ctx: ToolExecutionContext<V>) {
      const file = resolve(root, path);
      const edit = (before: Parameters<typeof textOf>[2]) =>
        replaceOnce(shown(file), textOf("edit", file, before), old, by);
      await editorOf(ctx).change(file, edit, ctx);
      return "Edited.";
    },
  });

  return [writeFile, editFile];
}
