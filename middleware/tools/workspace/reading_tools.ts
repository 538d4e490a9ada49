/**
 * Defines the tools that read: `read_file`, `list_files` and `search_files`.
 *
 * @module
 */
import * as z from "zod";
import { type AnyTool, type Scope, tool, ToolError, type ToolExecutionContext } from "../../../mod.ts";
import { delay } from "../../../src/core/kit.ts";
import type { FileEditor } from "./file_editor.ts";
import { resolve, root, shown } from "./path.ts";
import { maxMatchedLength, type Search, search } from "./search.ts";
import { decode, linesIn } from "./text.ts";
import { walk, type WalkEntry } from "./walk.ts";

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
