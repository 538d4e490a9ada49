/**
 * Paths: what the model writes becomes a path beneath the root, or is refused. Nothing here looks at a file.
 *
 * @module
 */
import { ToolError } from "../../../mod.ts";

/** The path of the root itself. */
export const root = ".";

const longestPath = 1_024;
/** In bytes: what the file systems take. */
const longestName = 255;

/** What no name may have, as it is written or as a file system, a proxy or a reader may come to understand it. */
const refused: readonly (readonly [RegExp, string])[] = [
  [/\p{C}/u, "it has characters that do not show"],
  [/[/\\\u2044\u2215\u2216\u29F5\u29F8\u29F9]/, "only / divides names"],
  [/:/, "a drive, a scheme or a stream is no part of a path"],
  [/%(?:[0-9a-f]{2}|u[0-9a-f]{4})/i, "it is encoded"],
  [/^[.\s]+$/, "a name of dots or spaces is not taken"],
  [/^\s|[.\s]$/, "a name begins with no space, and ends in neither a space nor a dot"],
];

/** The path that `path` means, seen from `folder`. Throws a `ToolError` where it leaves the root, or tries to look as if it did not. */
export function resolve(folder: string, path: string): string {
  if (path === "") throw refusal(path, "it is empty");
  if (/^[/~]/.test(path)) throw refusal(path, "it has to begin in the workspace, and not at / or ~");
  const names = folder === root ? [] : folder.split("/");
  for (const name of path.length > longestPath ? [] : path.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") {
      const why = whyNot(name);
      if (why !== undefined) throw refusal(path, why);
      names.push(name);
    } else if (names.pop() === undefined) throw refusal(path, "it leaves the workspace");
  }
  const resolved = names.join("/") || root;
  if (Math.max(path.length, resolved.length) > longestPath) throw refusal(path, "it is too long");
  return resolved;
}

/** Whether a path could say `name`. */
export function isName(name: string): boolean {
  return name !== "" && whyNot(name) === undefined;
}

/** The path of `name` in `folder`. */
export function join(folder: string, name: string): string {
  return folder === root ? name : `${folder}/${name}`;
}

/** Why a name is not taken, where it is not. */
function whyNot(name: string): string | undefined {
  if (new TextEncoder().encode(name).length > longestName) return "a name in it is too long";
  const folded = name.normalize("NFKC"); // fullwidth dots and slashes are dots and slashes to some
  return refused.find(([pattern]) => pattern.test(folded))?.[1];
}

function refusal(path: string, why: string): ToolError {
  const shown = path.length > 100 ? `${path.slice(0, 100)}…` : path;
  return new ToolError(`Cannot use the path ${JSON.stringify(shown)}: ${why}.`);
}
