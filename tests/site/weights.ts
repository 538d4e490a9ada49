/**
 * The weight of each middleware in a bundle.
 *
 * @module
 */
import { output } from "../package/pack.ts";

const folder = "dist/site_weights";

/** Returns the kilobytes that each module adds to the bundle of an agent, minified and compressed. */
export async function kilobytesOf(modules: readonly string[]): Promise<ReadonlyMap<string, number>> {
  await Deno.mkdir(folder, { recursive: true });
  const base = await weigh("base", `export { agent } from "@jizai/jizai";`);
  const weights = new Map<string, number>();
  for (const name of modules) {
    const total = await weigh("one", `export { agent } from "@jizai/jizai";\nexport * as part from "${name}";`);
    weights.set(name, Math.max(0, total - base));
  }
  await Deno.remove(folder, { recursive: true });
  return weights;
}

async function weigh(name: string, text: string): Promise<number> {
  const path = `${folder}/${name}.ts`;
  await Deno.writeTextFile(path, text);
  const bundle = await output("deno", "bundle", "--quiet", "--platform", "deno", "--minify", path);
  const stream = new Blob([bundle]).stream().pipeThrough(new CompressionStream("gzip"));
  return (await new Response(stream).arrayBuffer()).byteLength / 1_000;
}
