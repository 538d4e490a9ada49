/**
 * The tools that look: `read_file`, `list_files` and `search_files`.
 *
 * @module
 */
import { type AnyTool, type Scope, tool, ToolError, type ToolExecutionContext } from "../../../mod.ts";
import { decode, placesOf } from "./text.ts";
import type { Desk } from "./desk.ts";
import { count, flag, input, text } from "./input.ts";
import { resolve, root } from "./path.ts";
import { type Budget, pattern } from "./pattern.ts";
import { type Found, walk } from "./walk.ts";

/** Characters of a file that one call reads. */
const mostRead = 50_000;
/** Entries that one call lists. */
const mostListed = 1_000;
/** Entries that one search comes by. */
const mostWalked = 10_000;
const mostMatches = 100;
/** Characters of a line that a search shows. */
const mostShown = 300;
/** What one search may cost: about a second. */
const mostSearched = 10_000_000;

/** Makes the tools; `deskOf` gives each run its desk. */
export function readingTools<V>(deskOf: (scope: Scope<V>) => Desk): readonly AnyTool<V>[] {
  const readFile = tool({
    name: "read_file",
    description: "Reads a text file, or some of its lines.",
    input: input({
      path: text("The file"),
      from: count("The first line to read. Default: 1", 1),
      lines: count("How many lines to read. Default: 2000", 2_000),
    }),
    async execute({ path, from, lines }, ctx: ToolExecutionContext<V>) {
      return excerpt(await deskOf(ctx).read(resolve(root, path), ctx), from, lines);
    },
  });

  const listFiles = tool({
    name: "list_files",
    description: "Lists what is in a folder. The names of folders end in /.",
    input: input({
      path: text("The folder; . is where you are"),
      deep: flag("Whether to list what is in its folders too. Default: false"),
    }),
    async execute({ path, deep }, ctx: ToolExecutionContext<V>) {
      const folder = resolve(root, path);
      const { files } = deskOf(ctx);
      if ((await files.stat(folder))?.type !== "folder") throw new ToolError("There is no such folder.");
      const listed: string[] = [];
      for await (const found of walk(files, folder, deep)) {
        ctx.signal.throwIfAborted();
        if (listed.length === mostListed) return told(listed, `There is more than these ${mostListed}.`);
        listed.push(seenFrom(folder, found.path) + (found.type === "folder" ? "/" : ""));
      }
      return told(listed, listed.length === 0 ? "It is empty." : undefined);
    },
  });

  const searchFiles = tool({
    name: "search_files",
    description:
      "Finds the lines that have a text, or match a regular expression, in a file or in all files of a folder.",
    input: input({
      path: text("The file or folder; . is where you are"),
      pattern: text("What to look for"),
      regex: flag("Whether that is a regular expression, as in JavaScript, and not the text itself. Default: false"),
    }),
    async execute({ path, pattern, regex }, ctx: ToolExecutionContext<V>) {
      const matches = matcher(pattern, regex);
      const desk = deskOf(ctx);
      const start = resolve(root, path);
      const budget: Budget = { left: mostSearched };
      const matched: string[] = [];
      let walked = 0;
      for await (const found of filesAt(desk, start)) {
        ctx.signal.throwIfAborted();
        if (++walked > mostWalked) {
          return told(matched, `There are more than ${mostWalked} files and folders: say which.`);
        }
        const lines = found.type === "file" ? await linesOf(desk, found.path) : [];
        for (const [index, line] of lines.entries()) {
          if (matches(line, budget)) matched.push(`${seenFrom(start, found.path, ":")}${index + 1}: ${clipped(line)}`);
          if (budget.left < 0) return told(matched, "There is more text than one search can read: say where to look.");
          if (matched.length === mostMatches) return told(matched, `These are the first ${mostMatches}.`);
        }
      }
      return told(matched, matched.length === 0 ? "There is none." : undefined);
    },
  });

  return [readFile, listFiles, searchFiles];
}

/** Some lines of a text, and which those are where they are not all. */
function excerpt(text: string, from: number, count: number): string {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  if (lines.length === 0) return told([], "It is empty.");
  if (from > lines.length) throw new ToolError(`It has ${lines.length} lines.`);
  const whole = lines.slice(from - 1, from - 1 + count).join("\n");
  const shown = whole.slice(0, mostRead).toWellFormed();
  const last = from - 1 + shown.split("\n").length;
  if (from === 1 && last === lines.length && shown === whole) return text;
  return told([shown], `Lines ${from} to ${last} of ${lines.length}${shown === whole ? "" : ", the last one cut"}.`);
}

/** Lines for the model, and a remark of which it can see that it is none of them. */
function told(lines: readonly string[], remark: string | undefined): string {
  return [...lines, ...remark === undefined ? [] : [`[${remark}]`]].join("\n");
}

/** A path as it is seen from the file or folder that was asked for. */
function seenFrom(start: string, path: string, end = ""): string {
  if (path === start) return "";
  return (start === root ? path : path.slice(start.length + 1)) + end;
}

function matcher(sought: string, regex: boolean): (line: string, budget: Budget) => boolean {
  if (sought === "") throw new ToolError("Cannot search: `pattern` is empty.");
  if (regex) return pattern(sought);
  return (line, budget) => {
    budget.left -= line.length + 1;
    return placesOf(sought, line).next().done === false;
  };
}

/** The file that is meant, or all files of the folder. */
async function* filesAt({ files }: Desk, path: string): AsyncIterable<Found> {
  const stat = await files.stat(path);
  if (!stat) throw new ToolError("There is no such file or folder.");
  if (stat.type === "file") yield { path, type: stat.type };
  else yield* walk(files, path, true);
}

/** The lines of a file; none where it is no text, or too large. */
async function linesOf({ files, maxBytes }: Desk, path: string): Promise<readonly string[]> {
  const stat = await files.stat(path);
  const file = stat?.type === "file" && stat.size <= maxBytes ? await files.read(path) : undefined;
  return (file && decode(file.bytes))?.split(/\r?\n/) ?? [];
}

function clipped(line: string): string {
  return line.length > mostShown ? `${line.slice(0, mostShown).toWellFormed()}…` : line;
}
