/**
 * The reference: a page for each module of the package, with every exported symbol, from `deno doc --json`.
 *
 * @module
 */
import { output } from "../package/pack.ts";
import type { Draft } from "./pages.ts";
import {
  type DocFunction,
  type DocMembers,
  type DocMethod,
  type DocType,
  type DocTypeParam,
  functionText,
  memberText,
  memberTexts,
  typeParamsText,
  typeText,
} from "./signature.ts";

/** A declaration of a symbol. */
export interface Declaration {
  readonly kind: "function" | "class" | "variable" | "interface" | "typeAlias" | "reference";
  readonly location: Location;
  readonly jsDoc?: { readonly doc?: string };
  readonly def:
    & DocFunction
    & DocMembers
    & {
      readonly typeParams?: readonly DocTypeParam[];
      readonly extends?: string | readonly DocType[];
      readonly constructors?: readonly DocMethod[];
      readonly target?: Location;
    };
}

interface Location {
  readonly filename: string;
  readonly line: number;
}

/** An exported symbol. */
export interface DocSymbol {
  readonly name: string;
  readonly declarations: readonly Declaration[];
}

/** A module of the package. */
export interface DocModule {
  /** The name by which it is imported. */
  readonly name: string;
  /** The path of its file. */
  readonly file: string;
  readonly doc: string;
  readonly symbols: readonly DocSymbol[];
}

/** Returns the modules of the package, which `exports` of `deno.json` names. */
export async function modulesOf(
  { name, exports }: { readonly name: string; readonly exports: Readonly<Record<string, string>> },
): Promise<DocModule[]> {
  const files = [...new Set(Object.values(exports))];
  const { nodes }: { readonly nodes: Readonly<Record<string, RawModule>> } = JSON.parse(
    await output("deno", "doc", "--json", ...files),
  );
  const targets = Object.values(nodes).flatMap(({ symbols }) => symbols).flatMap(({ declarations }) => declarations)
    .flatMap(({ def }) => def.target ? [def.target.filename] : []).filter((file) => !(file in nodes));
  const others: { readonly nodes: typeof nodes } = targets.length > 0
    ? JSON.parse(await output("deno", "doc", "--json", ...new Set(targets)))
    : { nodes: {} };
  const declared = new Map(
    [...Object.values(nodes), ...Object.values(others.nodes)].flatMap(({ symbols }) => symbols)
      .flatMap(({ declarations }) => declarations)
      .filter(({ kind }) => kind !== "reference").map((declaration) => [keyOf(declaration.location), declaration]),
  );
  return Object.entries(exports).map(([entry, path]) => {
    const file = path.slice("./".length);
    const raw = nodes[Object.keys(nodes).find((url) => url.endsWith(`/${file}`)) ?? ""];
    if (!raw) throw new Error(`Cannot document "${entry}": deno doc returned nothing for ${file}`);
    const symbols = raw.symbols.map((symbol) => ({
      name: symbol.name,
      declarations: symbol.declarations.map((each) =>
        each.def?.target ? declared.get(keyOf(each.def.target)) ?? each : each
      ),
    }));
    return { name: name + entry.slice(1), file, doc: raw.module_doc?.doc ?? "", symbols };
  });
}

interface RawModule {
  readonly module_doc?: { readonly doc?: string };
  readonly symbols: readonly DocSymbol[];
}

function keyOf({ filename, line }: Location): string {
  return `${filename}:${line}`;
}

/** Returns the address of the page of a module. */
export function addressOfModule(name: string): string {
  const path = name.split("/").slice(2).join("/");
  return path.startsWith("middleware/") ? path : `reference/${path || "jizai"}`;
}

/** Returns the page of a module. */
export function referencePage(module: DocModule): Draft {
  const { name, file, doc } = module;
  const markdown = [
    `# \`${name}\` {#page}`,
    prose(doc),
    `\`\`\`ts ignore\nimport { ${module.symbols.find(isValue)?.name ?? "type Event"} } from "${name}";\n\`\`\``,
    symbolsText(module),
  ].join("\n\n");
  const description = doc.split(/(?<=[.:])\s/)[0] ?? "";
  return { source: file, path: addressOfModule(name), title: name.replace(/^@jizai\//, ""), description, markdown };
}

function isValue({ declarations }: DocSymbol): boolean {
  return declarations.some(({ kind }) => kind === "function" || kind === "class" || kind === "variable");
}

/** Returns the symbols of a module: values first, then types, each with an anchor of its name. */
export function symbolsText(module: DocModule, leaveOut: readonly string[] = []): string {
  const names = new Set(module.symbols.map(({ name }) => name));
  const shown = module.symbols.filter(({ name }) => !leaveOut.includes(name));
  const sorted = [...shown.filter(isValue), ...shown.filter((symbol) => !isValue(symbol))];
  return sorted.map((symbol) => symbolText(symbol, names)).join("\n\n");
}

/** Returns one symbol: its signature, its docblock and its members. */
export function symbolText({ name, declarations }: DocSymbol, names: ReadonlySet<string>, level = "##"): string {
  const isCallable = declarations.some(({ kind }) => kind === "function");
  const signature = declarations.map((declaration) => signatureOf(name, declaration)).join("\n");
  const used = new Set(Array.from(signature.matchAll(/\b[A-Z]\w+/g), ([word]) => word));
  const types = [...used].filter((word) => word !== name && names.has(word)).map((word) => `[\`${word}\`](#${word})`);
  return [
    `${level} ${name}${isCallable ? "()" : ""} {#${name}}`,
    ...new Set(declarations.map(({ jsDoc }) => prose(jsDoc?.doc ?? "", names))),
    `\`\`\`ts ignore\n${signature}\n\`\`\``,
    ...(types.length > 0 ? [`Types: ${types.join(", ")}`] : []),
    ...declarations.map(membersText),
  ].filter(Boolean).join("\n\n");
}

function signatureOf(name: string, { kind, def }: Declaration): string {
  const generic = typeParamsText(def.typeParams);
  switch (kind) {
    case "function":
      return `function ${functionText(name, def)}`;
    case "variable":
      return `const ${name}: ${typeText(def.tsType)}`;
    case "typeAlias":
      return `type ${name}${generic} = ${typeText(def.tsType)}`;
    case "class":
      return `class ${name}${generic}${typeof def.extends === "string" ? ` extends ${def.extends}` : ""}`;
    default: {
      const bases = Array.isArray(def.extends) ? def.extends.map(typeText) : [];
      return `interface ${name}${generic}${bases.length > 0 ? ` extends ${bases.join(", ")}` : ""}`;
    }
  }
}

/** Returns the members of an interface or a class as a list. */
export function membersText({ kind, def }: Declaration): string {
  if (kind !== "interface" && kind !== "class") return "";
  const { properties = [], methods = [], indexSignatures = [] } = def;
  const members = [...properties, ...methods].filter(({ name }) => !name.startsWith("~"));
  const lines = members.map((member) => `- ${code(memberText(member))}${described(member.jsDoc?.doc)}`);
  return [...lines, ...memberTexts({ indexSignatures }).map((text) => `- ${code(text)}`)].join("\n");
}

function described(doc: string | undefined): string {
  return doc ? `\\\n  ${prose(doc).replaceAll("\n", "\n  ")}` : "";
}

function code(text: string): string {
  return text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;
}

/** Returns a docblock as Markdown: its links lead to symbols, and no text of it is taken for HTML. */
export function prose(doc: string, names: ReadonlySet<string> = new Set()): string {
  return doc.trim().split(/(```[^]*?```|`[^`]*`)/).map((text, index) => {
    if (index % 2 === 1) return text;
    return text.replaceAll("<", "&lt;").replace(
      /\{@link(?:code)? (\w+)\}/g,
      (_, name: string) => names.has(name) ? `[\`${name}\`](#${name})` : `\`${name}\``,
    );
  }).join("");
}

/** Returns the page that lists all modules and their symbols. */
export function referenceIndex(modules: readonly DocModule[]): Draft {
  const lines = modules.map((module) => {
    const symbols = module.symbols.map(({ name }) => `[\`${name}\`](/${module.file}#${name})`).join(" ");
    return `## [${module.name}](/${module.file})\n\n${prose(module.doc.split("\n\n")[0] ?? "")}\n\n${symbols}`;
  });
  const description = "Every exported symbol, by its module.";
  const markdown = ["# Reference", description, ...lines].join("\n\n");
  return { source: "mod.ts", path: "reference/index", title: "All symbols", description, markdown };
}
