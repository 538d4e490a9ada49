/**
 * The types that public signatures name, read with `deno doc`.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";

/** A part of the output of `deno doc --json`. */
type Doc = { readonly [name: string]: Doc } | readonly Doc[] | string | null;

const config = JSON.parse((await Deno.readTextFile("deno.json")).replace(/^\s*\/\/.*$/gm, ""));
const paths = new Map(Object.entries<string>(config.exports));

/** Returns the exported symbols of each entry point, by its name in `deno.json`. */
async function documented(): Promise<ReadonlyMap<string, ReadonlyMap<string, Doc>>> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["doc", "--json", "--no-npm", ...paths.values()],
    env: { NO_COLOR: "1" },
    stderr: "null",
  }).output();
  const { nodes } = JSON.parse(new TextDecoder().decode(stdout));
  const symbolsOf = (path: string) =>
    nodes[new URL(path, `file://${Deno.cwd()}/`).href].symbols as (Doc & { readonly name: string })[];
  return new Map([...paths].map(([name, path]) => [name, new Map(symbolsOf(path).map((node) => [node.name, node]))]));
}

/** Returns the names of the types of this package, or of its dependencies, that a symbol names. Type parameters and globals have another resolution. */
function namedBy(node: Doc): string[] {
  if (typeof node !== "object" || node === null) return [];
  if (Array.isArray(node)) return node.flatMap(namedBy);
  const { kind, value, resolution, jsDoc } = node as { readonly [name: string]: Doc };
  if (JSON.stringify(jsDoc ?? null).includes('"internal"')) return [];
  const named = kind === "typeRef" ? value : resolution && node;
  const { typeName = "", resolution: found } = (named ?? {}) as { readonly [name: string]: Doc };
  const { kind: origin, specifier = "" } = (found ?? {}) as { readonly [name: string]: Doc };
  const own = origin === "local" || origin === "import" && `${specifier}`.startsWith(".");
  return [...own ? [`${typeName}`] : [], ...Object.values(node).flatMap(namedBy)];
}

/** Returns the place where a symbol is declared, which its re-exports share. */
function placeOf(node: Doc): string {
  const [{ location, def }] = (node as unknown as Declared).declarations;
  const { filename, line } = def?.target ?? location;
  return `${filename}:${line}`;
}

interface Place {
  readonly filename: string;
  readonly line: number;
}

interface Declared {
  /** `target` is the declaration behind a re-export. */
  readonly declarations: readonly [{ readonly location: Place; readonly def?: { readonly target?: Place } }];
}

/** Returns the names of the types that a module exports under another name. */
async function renamed(module: string): Promise<string[]> {
  return [...(await Deno.readTextFile(paths.get(module)!)).matchAll(/\b(\w+) as \w+/g)].map(([, name = ""]) => name);
}

Deno.test("each type that a public signature names is exported by its module or by mod.ts, or by the module of a port that mod.ts names", async () => {
  const modules = await documented();
  const main = modules.get(".")!;
  assert(main.has("Middleware"), "the types of mod.ts were not found");
  const everywhere = [...modules.values()].flatMap((symbols) => [...symbols.keys()]);
  /** The names that a reader of a symbol finds: those of the modules that export it. */
  const reachable = new Map<string, Set<string>>();
  for (const [module, symbols] of modules) {
    const found = module === "." ? everywhere : [...symbols.keys(), ...await renamed(module)];
    for (const node of symbols.values()) {
      const names = reachable.get(placeOf(node)) ?? new Set(main.keys());
      for (const name of found) names.add(name);
      reachable.set(placeOf(node), names);
    }
  }
  const missing = [...modules].flatMap(([module, symbols]) =>
    [...symbols].filter(([symbol]) => symbol !== "records") // `deno doc` reads the function behind its type
      .flatMap(([symbol, node]) =>
        [...new Set(namedBy(node))]
          .filter((name) => !reachable.get(placeOf(node))!.has(name))
          .map((name) => `${module}: ${symbol} names ${name}`)
      )
  );
  assertEquals(missing, []);
});
