/**
 * Bundles of the files in `bundles/`, minified as they would be deployed.
 *
 * @module
 */
import { deno } from "../kit/processes.ts";
import { charactersBySource, splitSourceMap } from "./source_map.ts";

const sizes = new Map<string, Promise<number>>();

/** Returns the kilobytes of a bundle, compressed. */
export function sizeOf(name: string): Promise<number> {
  const size = sizes.get(name) ?? bundled(name).then(compressed);
  sizes.set(name, size);
  return size;
}

/** Bundles a file of `bundles/`. `options` are passed on to `deno bundle`. */
export async function bundled(name: string, options: readonly string[] = []): Promise<string> {
  const path = new URL(`../bundles/${name}`, import.meta.url).pathname;
  return await deno(["bundle", "--quiet", "--platform", "browser", "--minify", ...options, path]);
}

/** Returns how many characters of a bundle come from each source. */
export async function charactersOf(name: string): Promise<ReadonlyMap<string, number>> {
  return charactersBySource(splitSourceMap(await bundled(name, ["--sourcemap", "inline"])));
}

async function compressed(text: string): Promise<number> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return (await new Response(stream).arrayBuffer()).byteLength / 1_024;
}
