/**
 * Modules as syntax trees, read with the parser of `deno lint`.
 *
 * @module
 */

/** A module: its path from the root of the repository, and its text. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

/** An import of a module. */
export interface Import {
  readonly specifier: string;
  /** The path that the specifier resolves to. A bare specifier is unchanged. */
  readonly target: string;
  /** The imported names; `*` for all of them. */
  readonly names: readonly string[];
  /** Whether one of them is exported again. */
  readonly passedOn: boolean;
  /** Whether only types are imported, so that the compiled module does not import anything. */
  readonly ofTypes: boolean;
}

/** A node, also of a parameter that declares a field, which is missing in the type of the platform. */
export type Node = Deno.lint.Node | Deno.lint.TSParameterProperty;

/** Reads every module in `roots`, which are files or folders. A root that does not exist is empty. */
export function read(...roots: readonly string[]): Promise<Source[]> {
  return readAll(roots, /\.ts$/);
}

async function readAll(roots: readonly string[], named: RegExp): Promise<Source[]> {
  const sources: Source[] = [];
  for (const path of roots) {
    const info = await Deno.lstat(path).catch(ifMissing(undefined));
    if (info?.isFile && named.test(path)) sources.push({ path, text: await Deno.readTextFile(path) });
    if (info?.isDirectory) {
      sources.push(...await readAll((await list(path)).map((name) => `${path}/${name}`), named));
    }
  }
  return sources;
}

/** Returns the lines of each TypeScript file of `src` and `middleware`, by path. The generated bundle of the playground is left out. */
export async function linesOfFiles(): Promise<ReadonlyMap<string, number>> {
  const sources = await readAll(["src", "middleware"], /\.tsx?$/);
  const written = sources.filter(({ path }) => path !== "src/playground/bundle.ts");
  return new Map(written.map(({ path, text }) => [path, text.trimEnd().split("\n").length]));
}

/** Returns the sorted names in a folder; none if it does not exist. */
export async function list(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(folder)).catch(ifMissing<Deno.DirEntry[]>([]));
  return entries.map(({ name }) => name).sort();
}

/** Returns the sorted paths of the files in a folder and its folders. */
export async function filesIn(path: string): Promise<string[]> {
  const names = await list(path);
  const files = await Promise.all(names.map(async (name) => {
    const each = `${path}/${name}`;
    return (await Deno.lstat(each)).isDirectory ? await filesIn(each) : [each];
  }));
  return files.flat();
}

const importsBySource = new WeakMap<Source, readonly Import[]>();

/** Returns every import of a module: static, dynamic, of a type, and each export from another module. */
export function importsOf(source: Source): readonly Import[] {
  const imports = importsBySource.get(source) ?? readImports(source);
  importsBySource.set(source, imports);
  return imports;
}

function readImports(source: Source): Import[] {
  const imports: (Import & { readonly locals: readonly string[] })[] = [];
  const exported = new Set<string>();

  function add(
    specifier: unknown,
    names: readonly string[],
    { locals = [], passedOn = false, ofTypes = false }: Partial<Import & { readonly locals: readonly string[] }> = {},
  ) {
    if (typeof specifier !== "string") return;
    const relative = specifier.startsWith(".");
    const target = relative ? new URL(specifier, `file:///${source.path}`).pathname.slice(1) : specifier;
    imports.push({ specifier, target, names, locals, passedOn, ofTypes });
  }

  walk(source, {
    ImportDeclaration({ source, specifiers, importKind }) {
      const ofTypes = importKind === "type" ||
        specifiers.length > 0 && specifiers.every((each) => "importKind" in each && each.importKind === "type");
      add(source.value, specifiers.map(importedName), { locals: specifiers.map(({ local }) => local.name), ofTypes });
    },
    ExportNamedDeclaration({ source, specifiers, exportKind }) {
      const names = specifiers.map(({ local }) => nameOf(local));
      if (source) add(source.value, names, { passedOn: true, ofTypes: exportKind === "type" });
      else for (const name of names) exported.add(name);
    },
    ExportAllDeclaration: ({ source, exportKind }) =>
      add(source.value, ["*"], { passedOn: true, ofTypes: exportKind === "type" }),
    "ImportExpression > Literal": ({ value }) => add(value, ["*"]),
    "TSImportType Literal": ({ value }) => add(value, ["*"], { ofTypes: true }),
  });
  return imports.map(({ locals, ...taken }) => ({
    ...taken,
    passedOn: taken.passedOn || locals.some((local) => exported.has(local)),
  }));
}

/** Returns the names that a module exports; those of a module that it exports as a whole as well. */
export async function exportsOf(source: Source): Promise<readonly string[]> {
  const names: string[] = [];
  const wholes: string[] = [];
  walk(source, {
    ExportNamedDeclaration({ declaration, specifiers }) {
      names.push(...specifiers.map(({ exported }) => nameOf(exported)));
      if (declaration && "id" in declaration && declaration.id?.type === "Identifier") names.push(declaration.id.name);
      if (declaration?.type === "VariableDeclaration") {
        names.push(...declaration.declarations.flatMap(({ id }) => id.type === "Identifier" ? [id.name] : []));
      }
    },
    ExportAllDeclaration: ({ source }) => void wholes.push(source.value),
  });
  for (const specifier of wholes) {
    const [whole] = await read(new URL(specifier, `file:///${source.path}`).pathname.slice(1));
    if (!whole) throw new Error(`Cannot read the exports of ${source.path}: there is no ${specifier}`);
    names.push(...await exportsOf(whole));
  }
  return names;
}

/** Tests by the type of a syntax node. A lint selector with a condition takes five times as long. */
export type NodeTests = {
  readonly [K in Deno.lint.Node["type"]]?: (node: Extract<Deno.lint.Node, { type: K }>) => boolean;
};

/** Tests of nodes, and a text that every matching module contains outside of comments: modules without it are not parsed, which saves most of the time. */
export interface Pattern {
  readonly nodes: NodeTests;
  readonly text: RegExp;
}

/** Returns the places where a module matches a pattern, such as `src/core/run.ts:12`. */
export function places(source: Source, { nodes, text }: Pattern): string[] {
  const found: string[] = [];
  if (!text.test(source.text) || !text.test(codeOf(source.text))) return found;
  const visitor = Object.entries(nodes).map(([type, matches]) => {
    const test = matches as (node: Deno.lint.Node) => boolean; // it is called with nodes of `type` only
    return [type, (node: Deno.lint.Node) => void (test(node) && found.push(placeOf(source, node)))];
  });
  walk(source, Object.fromEntries(visitor));
  return found;
}

/** Removes comments and names of tests, but no line with a value in a template. What is left may contain some of them. */
function codeOf(text: string): string {
  return text.replace(/^ *(\/\/|\*[ /]|\*$|\/\*\*((?!\*\/).)*(\*\/)?$)((?!\$\{).)*$|[;,] \/\/ [^"'`$]*$/gm, "")
    .replaceAll(/\bDeno\.test\("[^"\n]*"/g, "");
}

/** Returns true for an identifier whose name matches. */
export function isNamed(node: Node | null | undefined, name: RegExp): boolean {
  return node?.type === "Identifier" && name.test(node.name);
}

/** Returns the `Pick<>` of types that the module does not declare: each is a partial copy of another module's type. */
export function partialCopies({ path, text }: Source): string[] {
  const declared = new Set(text.matchAll(/\b(?:interface|type|class) (\w+)/g).map(([, name]) => name));
  return [...text.matchAll(/\bPick<\s*(?:(?:Extract|Exclude|Omit|Partial|Required)<\s*)*(\w+)/g)]
    .filter(([, name]) => !declared.has(name))
    .map(([copy]) => `${path}: ${copy}`);
}

/** Finds casts without a comment in their statement or on the line above it. */
export function unexplainedCasts(source: Source): string[] {
  const found: string[] = [];
  walk(source, {
    "TSAsExpression:not([typeAnnotation.typeName.name=const])"(node: Deno.lint.TSAsExpression) {
      if (!explained(source, statementAround(node))) found.push(placeOf(source, node));
    },
  });
  return found;
}

/** Visits the syntax tree of a module. */
export function walk({ path, text }: Source, visitor: Deno.lint.LintVisitor): void {
  Deno.lint.runPlugin({ name: "walk", rules: { walk: { create: () => visitor } } }, path, text);
}

/** Returns the place of a node, such as `src/core/run.ts:12`. */
export function placeOf({ path, text }: Source, { range: [start] }: Deno.lint.Node): string {
  return `${path}:${text.slice(0, start).split("\n").length}`;
}

function statementAround(node: Node): Node {
  const inside = "parent" in node && !/(Statement|Declaration|Definition)$/.test(node.type);
  return inside ? statementAround(node.parent) : node;
}

function explained({ text }: Source, { range: [start, end] }: Node): boolean {
  const above = text.slice(0, start).trimEnd().lastIndexOf("\n");
  return /\/\/|\*\//.test(text.slice(above + 1, text.indexOf("\n", end)));
}

function importedName(specifier: Deno.lint.ImportDeclaration["specifiers"][number]): string {
  if (specifier.type === "ImportSpecifier") return nameOf(specifier.imported);
  return specifier.type === "ImportDefaultSpecifier" ? "default" : "*";
}

function nameOf(node: Deno.lint.Identifier | Deno.lint.StringLiteral): string {
  return node.type === "Identifier" ? node.name : node.value;
}

function ifMissing<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof Deno.errors.NotFound) return value;
    throw error;
  };
}
