/**
 * The places of code: folders of this repository, npm packages, and modules of the runtime.
 *
 * @module
 */

/** A file, and the folder, the package or the part of the runtime that it is in. */
export interface Place {
  readonly folder: string;
  readonly file: string;
}

const root = new URL("../../../", import.meta.url).href;

/** A file of an npm package, in Deno's cache or in `node_modules`: the package, and the path in it. */
const ofPackage =
  /\/(?:npm\/[^/]+\/((?:@[^/]+\/)?[^/]+)\/[^/]+|node_modules\/((?:@[^/]+\/)?[^/]+))\/((?!.*\/node_modules\/).*)$/;

/** Returns the place of a URL, or of a path that is relative to this repository. */
export function placeOf(source: string): Place {
  const url = new URL(source, root).href;
  const [, cached, installed, path] = url.match(ofPackage) ?? [];
  const name = cached ?? installed;
  if (name !== undefined) return { folder: name, file: `${name}/${path}` };
  if (!url.startsWith(root)) return { folder: url.replace(/\/.*/, ""), file: url };
  const file = url.slice(root.length);
  return { folder: file.replace(/\/?[^/]*$/, ""), file };
}
