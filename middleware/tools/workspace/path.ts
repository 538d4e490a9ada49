/**
 * Resolves the paths that a model writes against the root of the workspace, and edits texts. Nothing here accesses a file.
 *
 * @module
 */
import { ToolError } from "../../../mod.ts";
import { bordersOf, type FileEntry, type Files } from "../../../src/core/kit.ts";

/** The path of the root itself. */
export const root = ".";

const maxPathLength = 1_024;
/** In bytes: the limit of common file systems. */
const maxNameBytes = 255;

/** Patterns that no name may match, as written or as a file system, a proxy or a reader may interpret it, each with the reason. */
const refused: readonly (readonly [RegExp, string])[] = [
  [/\p{C}/u, "it contains invisible characters"],
  [/[/\\\u2044\u2215\u2216\u29F5\u29F8\u29F9]/, "only / separates names"],
  [/:/, "it contains a drive, a scheme or a stream"],
  [/%(?:[0-9a-f]{2}|u[0-9a-f]{4})/i, "it is percent-encoded"],
  [/^[.\s]+$/, "a name consists of dots or spaces"],
  [/^\s|[.\s]$/, "a name begins with a space, or ends with a space or a dot"],
];

/** Folders of version control and of hooks. Other programs execute the files in them. */
const protectedPath =
  /(?:^|\/)(?:[^/]*\.git|git~\d+|\.hg|\.svn|\.bzr|\.husky|\.git-?hooks|\.github\/hooks|\.(?:claude|qoder)\/(?:hooks|settings[^/]*))(?:\/|$)/;

/** Resolves `path` from `folder` to a path from the root. Throws a `ToolError` if it leaves the root, or could be misread as another path. */
export function resolve(folder: string, path: string): string {
  if (path === "") throw refusal(path, "it is empty");
  if (/^[/~]/.test(path)) throw refusal(path, "it begins with / or ~; expected a path within the workspace");
  const names = folder === root ? [] : folder.split("/");
  for (const name of path.length > maxPathLength ? [] : path.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") {
      const reason = refusalReason(name);
      if (reason !== undefined) throw refusal(path, reason);
      names.push(name);
    } else if (names.pop() === undefined) throw refusal(path, "it leaves the workspace");
  }
  const resolved = names.join("/") || root;
  if (Math.max(path.length, resolved.length) > maxPathLength) throw refusal(path, "it is too long");
  return resolved;
}

/** Returns whether `name` may be a name in a path. */
function isName(name: string): boolean {
  return name !== "" && refusalReason(name) === undefined;
}

/**
 * Throws a `ToolError` if `path` is in a protected folder. These are the folders of version control and of hooks
 * (`.git`, `.hg`, `.svn`, `.bzr`, `.husky`, `.githooks`, `.github/hooks`), and
 * those with the hooks or settings of a coding agent (`.claude`, `.qoder`).
 */
export function expectWritable(path: string): void {
  if (!protectedPath.test(path.normalize("NFKC").toLowerCase())) return; // some file systems ignore case
  throw new ToolError(`Cannot write ${shown(path)}: it is in a folder of version control or of hooks.`);
}

/** Joins the path of a folder and a name. */
function join(folder: string, name: string): string {
  return folder === root ? name : `${folder}/${name}`;
}

/** Quotes a path for a message, and shortens it. */
export function shown(path: string): string {
  return JSON.stringify(path.length > 100 ? `${path.slice(0, 100)}…` : path);
}

function refusalReason(name: string): string | undefined {
  if (new TextEncoder().encode(name).length > maxNameBytes) return "a name in it is too long";
  const folded = name.normalize("NFKC"); // some readers take fullwidth dots and slashes for dots and slashes
  return refused.find(([pattern]) => pattern.test(folded))?.[1];
}

function refusal(path: string, reason: string): ToolError {
  return new ToolError(`Cannot use the path ${shown(path)}: ${reason}.`);
}

// Decodes, searches and edits the text of a file.

const encoder = new TextEncoder();

/** Decodes UTF-8, and keeps a byte order mark. Returns `undefined` for bytes that are not text. If `cut` is set, the last character may be incomplete. */
export function decode(bytes: Uint8Array, { cut = false }: { readonly cut?: boolean } = {}): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: cut });
    return text.includes("\0") ? undefined : text;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Yields the lines of a text, without their ends. */
export function* linesIn(text: string): Generator<string> {
  for (let start = 0, end = 0; end >= 0; start = end + 1) {
    end = text.indexOf("\n", start);
    const last = end < 0 ? text.length : end;
    yield text.slice(start, end > start && text[end - 1] === "\r" ? last - 1 : last);
  }
}

/** Encodes `text` as UTF-8; returns `undefined` if it contains half of a surrogate pair. */
export function encode(text: string): Uint8Array<ArrayBuffer> | undefined {
  return text.isWellFormed() ? encoder.encode(text) : undefined;
}

/**
 * Returns a function that yields each index at which `part` begins in a text, overlaps included. It takes time proportional to the text (Knuth, Morris,
 * Pratt 1977). An empty part is not found.
 */
export function finder(part: string): (text: string) => Generator<number> {
  const borders = bordersOf(part);
  return function* (text) {
    if (part === "") return;
    for (let at = 0, matched = 0; at < text.length; at++) {
      while (matched > 0 && (matched === part.length || part[matched] !== text[at])) {
        matched = borders[matched - 1] ?? 0;
      }
      if (part[matched] === text[at]) matched++;
      if (matched === part.length) yield at + 1 - matched;
    }
  };
}

/** Replaces `old`, which must occur once in `text`, with `by`. Throws a `ToolError` that names `path` if it does not. */
export function replaceOnce(path: string, text: string, old: string, by: string): string {
  const refuse = (reason: string) => new ToolError(`Cannot edit ${path}: ${reason}.`);
  if (old === "") throw refuse("`old` is empty; expected the text to replace");
  if (old === by) throw refuse("`old` and `new` are equal");
  if (!old.isWellFormed()) throw refuse("`old` contains half of a surrogate pair");
  const [index, ...more] = finder(old)(text);
  if (index === undefined) {
    const hint = text.includes("\r\n") && !old.includes("\r") ? "; the lines of the file end in \\r\\n" : "";
    throw refuse(`\`old\` does not occur in the file; expected an exact match${hint}`);
  }
  if (more.length > 0) {
    throw refuse(`\`old\` occurs ${more.length + 1} times; expected a longer text that occurs once`);
  }
  return text.slice(0, index) + by + text.slice(index + old.length);
}

/** A file or folder that a walk found. */
export interface WalkEntry {
  /** Its path from the root. */
  readonly path: string;
  /** Its type. */
  readonly type: FileEntry["type"];
}

/** Folders that no walk enters: they are large and generated. */
const ignored: readonly string[] = [".git", "node_modules"];

const maxEntries = 10_000;

/**
 * Yields the entries of `folder` by name. If `deep` is set, the entries of a folder follow that folder. Entries that no path can name are left out, and so are
 * those after the first 10,000 of one folder.
 */
export async function* walk(files: Files, folder: string, deep: boolean): AsyncGenerator<WalkEntry> {
  const entries: FileEntry[] = [];
  for await (const entry of files.list(folder)) {
    if (isName(entry.name)) entries.push(entry);
    if (entries.length === maxEntries) break;
  }
  entries.sort((a, b) => a.name < b.name ? -1 : 1);
  for (const { name, type } of entries) {
    const path = join(folder, name);
    yield { path, type };
    if (deep && type === "folder" && !ignored.includes(name)) yield* walk(files, path, deep);
  }
}

/** Returns whether a path is in a folder that no walk enters. */
export function isIgnored(path: string): boolean {
  return path.split("/").some((name) => ignored.includes(name));
}
