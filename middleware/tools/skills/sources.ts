/**
 * Lists the skills of folders and of URLs, and loads their content. A skill that cannot be used is reported, and takes no other one with it.
 *
 * @module
 */
import { unpack, type Unpacked } from "./archive.ts";
import { descriptionOf, nameOf, readSkillFile, required, type Skill, type SkillFile } from "./skill_file.ts";
import { type Scope, ToolError } from "../../../mod.ts";
import { fetchBytes, type Files, isObject, withinTime } from "../../../src/core/kit.ts";

/** Folders with skills. */
export interface SkillFolders<V = unknown> {
  /** The files, as `workspace()` takes them: `memoryFiles()`, `directory()`, or your own. */
  readonly files: Files | ((scope: Scope<V>) => Files);
  /** Folders to search. A folder that contains a `SKILL.md` is a skill; others are searched to a depth of three. A folder that is missing has no skills. Default: the root. */
  readonly folders?: readonly string[];
  /** Whether their texts reach the model without passing the `input` hooks. Default: true. */
  readonly trusted?: boolean;
}

/** A URL with skills. */
export interface SkillUrl {
  /**
   * The origin of a site with an index at `/.well-known/agent-skills/index.json`, or the URL of an index, which ends in `.json`. Any other URL is that of one
   * skill: of a `SKILL.md`, or of an archive (`.tar.gz` or `.zip`) with one at its root.
   */
  readonly url: string;
  /** Further origins from which skills may come. A skill or a redirect elsewhere is refused. Default: the origin of `url` alone. */
  readonly origins?: readonly string[];
  /** Whether their texts reach the model without passing the `input` hooks. Default: false. */
  readonly trusted?: boolean;
}

/** A place with skills. */
export type SkillSource<V = unknown> = SkillFolders<V> | SkillUrl;

/** The bounds of what is read. */
export interface Bounds {
  /** Most bytes of a file, of a response, and of the files of an archive together. */
  readonly maxBytes: number;
  /** Most milliseconds for a response. */
  readonly time: number;
  /** Milliseconds for which the response of a source is used again. */
  readonly keep: number;
}

/** A skill that a run may use. */
export interface OfferedSkill {
  readonly skill: Skill;
  /** Its place, for errors. */
  readonly place: string;
  readonly trusted: boolean;
  /** Reads its content. Rejects if it cannot be read. */
  readonly load: (scope: Scope) => Promise<SkillContent>;
}

/** The content of a skill. */
export interface SkillContent {
  readonly file: SkillFile;
  /** Its folder from the root of the files, if it has one. */
  readonly folder?: string;
  /** Paths of its other files, relative to the skill. */
  readonly paths: readonly string[];
  /** Reads one of these files. */
  readonly read: (path: string) => Promise<Uint8Array | undefined>;
}

/** Receives the place and the cause of a fault. */
export type Fault = (place: string, cause: unknown) => void;

/** Lists the skills of a source. The faults of skills that cannot be used are passed to `fault`. */
export type ListSkills<V> = (scope: Scope<V>, fault: Fault) => Promise<OfferedSkill[]>;

/** Name of the file that makes a folder a skill. */
const main = "SKILL.md";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Decodes a text. Throws a `ToolError` for bytes that are no text. */
export function decode(bytes: Uint8Array, path: string): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw new ToolError(`Cannot read ${JSON.stringify(path)}: it is no text.`, { cause });
  }
}

// Folders.

/** The depth to which folders are searched. */
const maxDepth = 3;
/** Most folders that are searched, and most files of a skill. */
const maxEntries = 1_000;

/** Lists the skills in folders. */
export function inFolders<V>(
  { files: from, folders = ["."], trusted = true }: SkillFolders<V>,
  { maxBytes }: Bounds,
): ListSkills<V> {
  /** Reads the skill of a folder. Throws if it cannot be used. */
  async function offer(files: Files, folder: string, fault: Fault): Promise<OfferedSkill[]> {
    const place = join(folder, main);
    const { skill, hidden } = readSkillFile(await textAt(files, place, maxBytes));
    const name = folder.split("/").at(-1);
    if (name !== "." && name !== skill.name) {
      fault(place, new TypeError(`it is used, but its \`name\` is "${skill.name}"; expected that of its folder`));
    }
    return hidden ? [] : [{ skill, place, trusted, load: () => contentOf(files, folder, maxBytes) }];
  }

  return async (scope, fault) => {
    const offered: OfferedSkill[] = [];
    const left = { folders: maxEntries };
    for (const start of folders) {
      await orFault(scope, start, fault, async () => {
        const files = typeof from === "function" ? from(scope) : from;
        for await (const folder of skillFolders(files, start, left)) {
          await orFault(scope, join(folder, main), fault, async () => {
            offered.push(...await offer(files, folder, fault));
          });
        }
      });
    }
    if (left.folders < 0) fault(folders.join(), new RangeError(`only the first ${maxEntries} folders are searched`));
    return offered;
  };
}

/** Does work, and passes its failure to `fault`. Rejects if the run is stopped. */
async function orFault({ signal }: Scope, place: string, fault: Fault, work: () => void | Promise<void>) {
  try {
    await work();
  } catch (error) {
    signal.throwIfAborted();
    fault(place, error);
  }
}

/** Yields the folders that are skills, by name. */
async function* skillFolders(
  files: Files,
  folder: string,
  left: { folders: number },
  depth = 0,
): AsyncGenerator<string> {
  if (left.folders-- <= 0) return;
  const entries = [];
  for await (const entry of files.list(folder)) entries.push(entry);
  if (entries.some(({ name, type }) => name === main && type === "file")) return yield folder;
  const inner = entries.filter(({ name, type }) => type === "folder" && isSearched(name)).map(({ name }) => name);
  for (const name of depth < maxDepth ? inner.toSorted() : []) {
    yield* skillFolders(files, join(folder, name), left, depth + 1);
  }
}

/** Whether a folder may contain a skill, or files of one. */
function isSearched(name: string): boolean {
  return !name.startsWith(".") && name !== "node_modules";
}

function join(folder: string, name: string): string {
  return folder === "." ? name : `${folder}/${name}`;
}

/** Reads a file. Throws a `RangeError` if it is too large. */
async function bytesAt(files: Files, path: string, maxBytes: number): Promise<Uint8Array | undefined> {
  const stat = await files.stat(path);
  if (stat?.type !== "file") return undefined;
  if (stat.size > maxBytes) {
    throw new ToolError(`Cannot read ${JSON.stringify(path)}: it has more than ${maxBytes} bytes.`);
  }
  return (await files.read(path))?.bytes;
}

async function textAt(files: Files, path: string, maxBytes: number): Promise<string> {
  const bytes = await bytesAt(files, path, maxBytes);
  if (!bytes) throw new ToolError(`Cannot read ${JSON.stringify(path)}: there is no such file.`);
  return decode(bytes, path);
}

async function contentOf(files: Files, folder: string, maxBytes: number): Promise<SkillContent> {
  const paths: string[] = [];
  for await (const path of filesIn(files, folder)) if (paths.push(path) === maxEntries) break;
  return {
    file: readSkillFile(await textAt(files, join(folder, main), maxBytes)),
    folder,
    paths,
    read: (path) => bytesAt(files, join(folder, path), maxBytes),
  };
}

/** Yields the paths of the files of a skill, relative to it and by name. */
async function* filesIn(files: Files, folder: string, inner = "."): AsyncGenerator<string> {
  const entries = [];
  for await (const entry of files.list(join(folder, inner).replace(/\/\.$/, ""))) entries.push(entry);
  for (const { name, type } of entries.toSorted((a, b) => a.name < b.name ? -1 : 1)) {
    const path = join(inner, name);
    if (type === "file" && path !== main) yield path;
    else if (type === "folder" && isSearched(name)) yield* filesIn(files, folder, path);
  }
}

// URLs.

/** The version of indexes that is read. */
const indexSchema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";

/** An artifact to fetch. */
interface Artifact {
  readonly url: string;
  readonly digest?: string | undefined;
}

/** Lists the skills at a URL. */
export function atUrl<V>({ url, origins = [], trusted = false }: SkillUrl, bounds: Bounds): ListSkills<V> {
  const { origin, pathname, href } = new URL(url);
  const source = pathname === "/" ? new URL("/.well-known/agent-skills/index.json", origin).href : href;
  const allowed = [origin, ...origins.map((each) => new URL(each).origin)];
  const refuses = (to: string) => allowed.includes(new URL(to).origin) ? undefined : "whose origin is not in `origins`";
  let kept: { readonly until: number; readonly bytes: Uint8Array<ArrayBuffer> } | undefined;

  async function fetched({ url, digest }: Artifact, { signal }: Scope): Promise<Uint8Array<ArrayBuffer>> {
    const refusal = refuses(url);
    if (refusal) throw new TypeError(`Cannot fetch ${url}: it is a URL ${refusal}`);
    const bytes = await withinTime((signal) => fetchBytes(url, { refuses, maxBytes: bounds.maxBytes, signal }), {
      ms: bounds.time,
      signal,
    });
    const actual = digest === undefined ? undefined : await digestOf(bytes);
    if (actual === digest) return bytes;
    throw new TypeError(`Cannot use ${url}: its digest is ${actual}; expected ${digest}`);
  }

  /** Returns the bytes at the URL of the source, which are kept for a while. */
  async function sourceBytes(scope: Scope): Promise<Uint8Array<ArrayBuffer>> {
    const now = scope.run.now();
    if (kept && now < kept.until) return kept.bytes;
    const bytes = await fetched({ url: source }, scope);
    kept = { until: now + bounds.keep, bytes };
    return bytes;
  }

  const offer = (skill: Skill, load: OfferedSkill["load"]) => ({ skill, place: shown(source), trusted, load });

  /** Reads an entry of an index. Throws a `TypeError` that names the member that cannot be read. */
  function offerEntry(entry: unknown): OfferedSkill {
    if (!isObject(entry)) throw new TypeError("an entry is no object");
    const text = (name: string) => typeof entry[name] === "string" ? entry[name] : undefined;
    const skill = { name: nameOf(text("name")), description: descriptionOf(text("description")) };
    const digest = text("digest");
    const type = text("type");
    if (type !== "skill-md" && type !== "archive") {
      throw new TypeError(
        `the \`type\` of "${skill.name}" is ${JSON.stringify(type)}; expected "skill-md" or "archive"`,
      );
    }
    if (entry.digest !== undefined && !/^sha256:[\da-f]{64}$/.test(digest ?? "")) {
      throw new TypeError(`the \`digest\` of "${skill.name}" is none; expected sha256: and 64 hexadecimal digits`);
    }
    const artifact = { url: new URL(required("url", text("url")), source).href, digest };
    let content: SkillContent | undefined;
    const load = async (scope: Scope) => content ??= await unpacked(await fetched(artifact, scope), bounds.maxBytes);
    return offer(skill, load);
  }

  return async (scope, fault) => {
    const offered: OfferedSkill[] = [];
    const place = shown(source);
    await orFault(scope, place, fault, async () => {
      const bytes = await sourceBytes(scope);
      if (!source.endsWith(".json")) {
        const content = await unpacked(bytes, bounds.maxBytes);
        if (!content.file.hidden) offered.push(offer(content.file.skill, () => Promise.resolve(content)));
        return;
      }
      for (const entry of entriesOf(JSON.parse(decode(bytes, place)))) {
        await orFault(scope, place, fault, () => void offered.push(offerEntry(entry)));
      }
    });
    return offered;
  };
}

/** Returns a URL without its parts that may contain secrets. */
function shown(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

function entriesOf(index: unknown): readonly unknown[] {
  const { $schema, skills } = isObject(index) ? index : {};
  if ($schema !== indexSchema) {
    throw new TypeError(`its \`$schema\` is ${JSON.stringify($schema) ?? "missing"}; expected "${indexSchema}"`);
  }
  if (!Array.isArray(skills)) throw new TypeError("its `skills` is no list");
  return skills;
}

async function digestOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return `sha256:${Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Returns the content of a `SKILL.md`, or of an archive. */
async function unpacked(bytes: Uint8Array<ArrayBuffer>, maxBytes: number): Promise<SkillContent> {
  const isText = bytes[0] !== 0x1f && bytes[0] !== 0x50; // the first bytes of gzip and zip
  const files: Unpacked = isText ? new Map([[main, bytes]]) : await unpack(bytes, maxBytes);
  const text = files.get(main);
  if (!text) throw new TypeError(`it has no ${main} at its root`);
  return {
    file: readSkillFile(decode(text, main)),
    paths: [...files.keys()].filter((path) => path !== main).toSorted(),
    read: (path) => Promise.resolve(files.get(path)),
  };
}
