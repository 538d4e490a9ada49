/**
 * Reads a `SKILL.md`: the frontmatter of the Agent Skills specification, and the instructions after it. The frontmatter is read without a YAML parser: texts,
 * lists of texts and maps of texts, in every form that YAML gives them. A text that contains `: ` needs no quotes, because published skills have none.
 *
 * @module
 */

/** A skill, as its frontmatter describes it. Of a skill in an index, only the name and the description are known before it is loaded. */
export interface Skill {
  /** Its name: lower-case letters, digits and single hyphens, at most 64 characters. */
  readonly name: string;
  /** Its purpose, and when to use it, in at most 1,024 characters. The model reads it before the skill is loaded. */
  readonly description: string;
  /** The license, or the name of the file that contains it. */
  readonly license?: string;
  /** The environment that it needs, at most 500 characters. */
  readonly compatibility?: string;
  /** Further properties. A value that is no text is given as it is written. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** The tools that it uses. It permits none of them: guards decide about each call. */
  readonly allowedTools?: readonly string[];
}

/** The content of a `SKILL.md`. */
export interface SkillFile {
  readonly skill: Skill;
  /** The instructions. */
  readonly body: string;
  /** True if only a person may use the skill (`disable-model-invocation`, as Claude Code defines it). */
  readonly hidden: boolean;
}

/** Reads a `SKILL.md`. Throws a `TypeError` that names the field, or the line, that cannot be read. */
export function readSkillFile(text: string): SkillFile {
  const [first = "", ...lines] = text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/);
  const end = lines.findIndex((line) => /^(?:---|\.\.\.)[ \t]*$/.test(line));
  if (first.trimEnd() !== "---" || end < 0) {
    throw new TypeError(`it has no frontmatter; expected a line --- at its ${end < 0 ? "end" : "beginning"}`);
  }
  const fields = fieldsOf(lines.slice(0, end), 2);
  const license = textOf(fields, "license");
  const compatibility = bounded("compatibility", textOf(fields, "compatibility"), 500);
  const metadata = metadataOf(fields.get("metadata"));
  const allowedTools = listOf(fields.get("allowed-tools"));
  return {
    skill: {
      name: nameOf(textOf(fields, "name")),
      description: descriptionOf(textOf(fields, "description")),
      ...(license !== undefined && { license }),
      ...(compatibility !== undefined && { compatibility }),
      ...(metadata && { metadata }),
      ...(allowedTools && { allowedTools }),
    },
    body: lines.slice(end + 1).join("\n").trim(),
    hidden: textOf(fields, "disable-model-invocation") === "true",
  };
}

/** Returns a name that the specification allows. Throws a `TypeError` for another one. */
export function nameOf(name: string | undefined): string {
  const expected = "expected lower-case letters, digits and single hyphens between them, at most 64 characters";
  const text = required("name", name);
  if (text.length <= 64 && /^[\p{Ll}\p{Lo}\p{N}]+(?:-[\p{Ll}\p{Lo}\p{N}]+)*$/u.test(text)) return text;
  throw new TypeError(`its \`name\` is ${JSON.stringify(text.slice(0, 100))}; ${expected}`);
}

/** Returns a description that the specification allows. Throws a `TypeError` for another one. */
export function descriptionOf(description: string | undefined): string {
  return bounded("description", required("description", description), 1_024);
}

/** Returns a text of at most `longest` characters. Throws a `TypeError` for a longer one. */
function bounded<T extends string | undefined>(field: string, text: T, longest: number): T {
  if (text === undefined || text.length <= longest) return text;
  throw new TypeError(`its \`${field}\` has ${text.length} characters; expected at most ${longest}`);
}

/** Returns a text that is not empty. Throws a `TypeError` that names the field otherwise. */
export function required(field: string, text: string | undefined): string {
  if (text) return text;
  throw new TypeError(`its \`${field}\` is ${text === undefined ? "missing" : "empty"}; expected a text`);
}

// Reads the fields.

/** A value: its text on the line of its key, and the lines that belong to it. */
interface Value {
  readonly inline: string;
  readonly block: readonly string[];
  /** The number of its first line. */
  readonly line: number;
}

/** Reads the entries of a map. `start` is the number of its first line. */
function fieldsOf(lines: readonly string[], start: number): ReadonlyMap<string, Value> {
  const fields = new Map<string, Value>();
  const indent = indentOf(lines);
  let block: string[] | undefined;
  for (const [index, line] of lines.entries()) {
    const content = dedent(line, indent);
    if (content === "" || (block && /^(?:\s|- |-$|[\]}])/.test(content))) block?.push(content); // a list may stand below its key without being indented
    else if (!content.startsWith("#")) {
      const [, key = "", inline = ""] = /^([^\s:#-][^:]*):(?:\s(.*))?$/.exec(content) ?? [];
      const name = unquoted(key.trim());
      if (!name) {
        throw new TypeError(`line ${start + index} of its frontmatter is no field; expected \`name: value\``);
      }
      block = [];
      fields.set(name, { inline: inline.trim(), block, line: start + index });
    }
  }
  return fields;
}

/** Returns the indentation of the first line that is not empty. */
function indentOf(lines: readonly string[]): number {
  return lines.find((line) => line.trim() !== "")?.search(/\S/) ?? 0;
}

/** Removes at most `indent` blanks at the beginning of a line, and those at its end. */
function dedent(line: string, indent: number): string {
  return line.slice(Math.min(indent, line.search(/\S|$/))).trimEnd();
}

/** Returns the text of a field. Throws a `TypeError` if it has another type. */
function textOf(fields: ReadonlyMap<string, Value>, name: string): string | undefined {
  const value = fields.get(name);
  if (!value) return undefined;
  if (isList(value) || isMap(value)) throw unexpected(name, value, "a text");
  return read(name, value);
}

/** Returns the tools of a list, or of a text. The arguments of a tool may contain blanks. */
function listOf(value: Value | undefined): readonly string[] | undefined {
  if (!value) return undefined;
  if (isMap(value)) throw unexpected("allowed-tools", value, "a text or a list");
  if (!isList(value)) return read("allowed-tools", value).match(/(?:[^\s,()]|\([^)]*\))+/g) ?? [];
  const items = value.inline.startsWith("[")
    ? itemsOf(value)
    : value.block.filter((line) => line.trim().startsWith("-")).map((line) => line.trim().slice(1).trim());
  return items.map((item) => unquoted(plain(item))).filter((item) => item !== "");
}

function metadataOf(value: Value | undefined): Readonly<Record<string, string>> | undefined {
  if (!value || (isBare(value.inline) && firstOf(value.block) === "")) return undefined;
  if (!isMap(value)) throw unexpected("metadata", value, "a map of texts");
  if (value.inline.startsWith("{")) {
    return Object.fromEntries(
      itemsOf(value).map((item) => {
        const colon = /^(?:"[^"]*"|'[^']*'|[^:])*/.exec(item)?.[0].length ?? 0;
        return [unquoted(item.slice(0, colon).trim()), unquoted(item.slice(colon + 1).trim())];
      }),
    );
  }
  return Object.fromEntries(Array.from(fieldsOf(value.block, value.line + 1), ([name, inner]) => {
    const isText = !isList(inner) && !isMap(inner);
    return [name, isText ? read(name, inner) : [inner.inline, ...inner.block].join("\n").trim()];
  }));
}

function unexpected(name: string, { line }: Value, expected: string): TypeError {
  return new TypeError(`its \`${name}\` in line ${line} of its frontmatter has another type; expected ${expected}`);
}

function isList({ inline, block }: Value): boolean {
  return inline.startsWith("[") || (isBare(inline) && /^-(?: |$)/.test(firstOf(block)));
}

function isMap({ inline, block }: Value): boolean {
  return inline.startsWith("{") ||
    (isBare(inline) && /^(?:"[^"]*"|'[^']*'|[^\s"':][^:]*):(?:\s|$)/.test(firstOf(block)));
}

/** Returns whether the line of a key contains no value. */
function isBare(inline: string): boolean {
  return inline === "" || inline.startsWith("#");
}

function firstOf(block: readonly string[]): string {
  return block.find((line) => line.trim() !== "" && !line.trim().startsWith("#"))?.trim() ?? "";
}

/** Returns the items between the brackets of a list or a map on one or more lines. */
function itemsOf({ inline, block }: Value): readonly string[] {
  const text = [inline, ...block].join(" ").trim();
  const items = text.slice(1, -1).match(/(?:"(?:[^"\\]|\\.)*"|'[^']*'|\{[^}]*\}|\[[^\]]*\]|[^,"'{[])+/g) ?? [];
  return items.map((item) => item.trim()).filter((item) => item !== "");
}

// Reads a text.

function read(name: string, { inline, block, line }: Value): string {
  if (/^[|>][-+\d]*(?:\s+#.*)?$/.test(inline)) {
    const lines = block.map((each) => dedent(each, indentOf(block)));
    return (inline.startsWith("|") ? lines.join("\n") : fold(lines)).trim();
  }
  const lines = [inline, ...block].map((each) => each.trim());
  if (!/^["']/.test(inline)) return fold(lines.map(plain)).trim();
  const [, quoted] = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?:#.*)?$/s.exec(fold(lines).trim()) ?? [];
  if (quoted === undefined) {
    throw new TypeError(`the quotes of \`${name}\` in line ${line} of its frontmatter do not end`);
  }
  return unquoted(quoted);
}

/** Removes the comment at the end of a line. */
function plain(line: string): string {
  return line.replace(/(?:^|\s)#.*$/, "").trim();
}

/** Joins lines as YAML does: a line break becomes a space, and an empty line a line break. Lines that are indented keep theirs. */
function fold(lines: readonly string[]): string {
  return lines.join("\n").replace(/(?<=\S)\n(?=\S)/g, " ").replace(/\n(\n+)/g, "$1");
}

const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };

/** Returns the text in quotes. A text without quotes stays as it is. */
function unquoted(text: string): string {
  if (/^'[^]*'$/.test(text)) return text.slice(1, -1).replaceAll("''", "'");
  if (!/^"[^]*"$/.test(text)) return text;
  return text.slice(1, -1).replace(/\\(?:u([\da-f]{4})|x([\da-f]{2})|([^]))/gi, (_, unicode, byte, character) => {
    const code = unicode ?? byte;
    return code === undefined ? escapes[character] ?? character : String.fromCharCode(parseInt(code, 16));
  });
}
