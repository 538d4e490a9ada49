/**
 * Resolves the paths that a model writes against the root of the workspace. Nothing here accesses a file.
 *
 * @module
 */
import { ToolError } from "../../../mod.ts";

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
export function isName(name: string): boolean {
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
export function join(folder: string, name: string): string {
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
