/**
 * Offers Agent Skills: folders with a `SKILL.md`, whose instructions the model loads when a task needs them.
 *
 * @module
 */
import type { Skill } from "./skill_file.ts";
import {
  atUrl,
  type Bounds,
  decode,
  inFolders,
  type ListSkills,
  type OfferedSkill,
  type SkillContent,
  type SkillSource,
} from "./sources.ts";
import { type Middleware, type Run, type Scope, tool, ToolError, type ToolExecutionContext } from "../../../mod.ts";
import { expectCount, expectNames, expectTime, reviewText, schemaOf } from "../../../src/core/kit.ts";

export type { Skill } from "./skill_file.ts";
export type { SkillFolders, SkillSource, SkillUrl } from "./sources.ts";
export type { Files } from "../../../src/core/kit.ts";

/** Options of `skills()`. */
export interface SkillsOptions<V = unknown> {
  /** Returns whether a skill is offered to a run. Default: every skill is. */
  readonly offers?: (skill: Skill, scope: Scope<V>) => boolean;
  /** Most bytes of a file, of a response, and of the files of an archive together. Default: 5,000,000. */
  readonly maxBytes?: number;
  /** Time to fetch a URL, in milliseconds. Default: 5,000. */
  readonly time?: number;
  /** Time for which an index, or a skill with a URL of its own, is not fetched again, in milliseconds. Default: 300,000. */
  readonly keep?: number;
  /** Allows `http:` URLs, for tests and private networks. Default: false. */
  readonly insecure?: boolean;
}

/** Most skills that are offered. */
const maxSkills = 500;
/** Most files that the model reads of when it loads a skill. */
const maxListed = 100;

const names = { load: "skill", read: "read_skill_file" } as const;

/**
 * Offers skills, as the specification at agentskills.io defines them. When a session is opened, the names and descriptions of the skills are added to the
 * agent's instructions. The model loads the instructions of a skill with the tool `skill`, and reads its files with `read_skill_file`. If there are no skills,
 * there are no such tools.
 *
 * No script of a skill is executed: the model can run one only with a tool of the agent, whose calls guards see, as they see those of the two tools. The
 * `allowed-tools` of a skill permit nothing. The texts of skills that are not trusted pass the `input` hooks, with the source "skill", before the model reads
 * them. A refused description hides its skill, and a refused text is not read. A skill that cannot be used is reported to the operator and left out. Of two
 * skills with one name, the first one counts.
 *
 * An index, a skill or an archive is fetched over https alone, from the origin of its source or from `origins`. The content must have the digest that the
 * index states. The skill of an index is fetched when the model loads it.
 *
 * Throws a `TypeError` for an invalid URL, one that is not `https:`, an unknown option, and a source without `files` or `url`; a `RangeError` if `maxBytes`
 * is no whole number of 1 or more, or a time is negative.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { skills } from "@jizai/jizai/middleware/skills";
 * import { memoryFiles } from "@jizai/jizai/middleware/workspace";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertMatch } from "@std/assert";
 *
 * const files = memoryFiles({
 *   "haiku/SKILL.md": "---\nname: haiku\ndescription: Writes a haiku. Use it for poems.\n---\nUse 5, 7 and 5 syllables.",
 * });
 * const model = scripted({ calls: [["skill", { name: "haiku" }]] }, "An old silent pond.");
 *
 * await agent({ model, use: [skills([{ files }])] }).run("Write a poem").result;
 * assertMatch(model.requests[0]?.instructions ?? "", /- haiku: Writes a haiku\. Use it for poems\./);
 * ```
 */
export function skills<V = unknown>(
  sources: readonly SkillSource<V>[],
  options: SkillsOptions<V> = {},
): Middleware<V> {
  expectNames("Cannot create skills()", options, ["offers", "maxBytes", "time", "keep", "insecure"]);
  const { offers = () => true, maxBytes = 5_000_000, time = 5_000, keep = 300_000, insecure = false } = options;
  expectCount("Cannot create skills()", { maxBytes });
  expectTime("Cannot create skills()", time);
  expectTime("Cannot create skills()", keep, { zero: true });
  const bounds = { maxBytes, time, keep };
  const lists = sources.map((source, index) => listOf(source, { ...bounds, insecure, index }));
  const offered = new WeakMap<Run, ReadonlyMap<string, OfferedSkill>>();

  /** Returns a skill and its content. */
  async function loaded(name: string, ctx: ToolExecutionContext<V>): Promise<OfferedSkill & { content: SkillContent }> {
    const all = offered.get(ctx.run);
    const skill = all?.get(name);
    if (!skill) {
      const known = [...all?.keys() ?? []].join(", ");
      throw new ToolError(`Cannot load skill ${JSON.stringify(name)}: there is none; expected one of ${known}.`);
    }
    try {
      return { ...skill, content: await skill.load(ctx) };
    } catch (cause) {
      ctx.signal.throwIfAborted();
      throw new ToolError(`Cannot load skill "${name}": its source failed.`, { cause });
    }
  }

  /** Passes a text to the model; one that is not trusted passes the `input` hooks. */
  async function reviewed({ trusted }: OfferedSkill, text: string, ctx: Scope): Promise<string> {
    return trusted ? text : await reviewText(ctx, "skill", text);
  }

  /** Describes a call for telemetry. A name that the model made up is no skill. */
  const operationOf = (name: string, { run }: Scope<V>, resource?: string) =>
    offered.get(run)?.has(name) ? { type: "skill", name, ...(resource && { resource }) } as const : undefined;

  const load = tool({
    name: names.load,
    description: "Loads the instructions of a skill.",
    input: textsOf({ name: "The name of the skill" }),
    readOnly: true,
    idempotent: true,
    operation: ({ name }, scope: Scope<V>) => operationOf(name, scope),
    execute: async ({ name }, ctx: ToolExecutionContext<V>) => {
      const skill = await loaded(name, ctx);
      return await reviewed(skill, describe(skill.content), ctx);
    },
  });

  const read = tool({
    name: names.read,
    description: "Reads a text file of a skill.",
    input: textsOf({ name: "The name of the skill", path: "The file, relative to the skill" }),
    readOnly: true,
    idempotent: true,
    operation: ({ name, path }, scope: Scope<V>) => operationOf(name, scope, path),
    execute: async ({ name, path }, ctx: ToolExecutionContext<V>) => {
      const skill = await loaded(name, ctx);
      const file = path.replace(/^(?:\.\/)+/, "");
      const { paths, read } = skill.content;
      const bytes = paths.includes(file) ? await read(file) : undefined; // a path that is not listed is never used
      if (!bytes) {
        throw new ToolError(
          `Cannot read ${JSON.stringify(path)} of skill "${name}": there is no such file; it has ${filesOf(paths)}.`,
        );
      }
      return await reviewed(skill, decode(bytes, file), ctx);
    },
  });

  /** Returns the lines that describe the skills of a run, and keeps the skills. */
  async function catalogue(ctx: Scope<V>): Promise<readonly string[]> {
    const fault = (place: string, cause: unknown) =>
      ctx.run.report(new Error(`Cannot offer a skill of ${place}`, { cause }));
    const found = (await Promise.all(lists.map((list) => list(ctx, fault)))).flat();
    const all = new Map<string, OfferedSkill>();
    const lines: string[] = [];
    for (const each of found) {
      const { skill, place } = each;
      if (!offers(skill, ctx)) continue;
      try {
        const before = all.get(skill.name);
        if (before) throw new TypeError(`there is one of the name "${skill.name}" already, of ${before.place}`);
        if (all.size === maxSkills) throw new RangeError(`only ${maxSkills} skills are offered`);
        const line = await reviewed(each, `${skill.name}: ${skill.description}`, ctx);
        lines.push(`- ${line.replace(/\s+/g, " ")}`); // a line that cannot look like several
        all.set(skill.name, each);
      } catch (error) {
        fault(place, error);
      }
    }
    offered.set(ctx.run, all);
    return lines;
  }

  return {
    name: "skills",
    tools: [load, read],
    async session(ctx, next) {
      const lines = await catalogue(ctx);
      const { instructions, tools } = ctx.settings;
      if (lines.length === 0) {
        const others: readonly unknown[] = [load, read];
        return await next({ settings: { tools: tools.filter((tool) => !others.includes(tool)) } });
      }
      const text = [introduction, ...lines].join("\n");
      return await next({ settings: { instructions: instructions ? `${instructions}\n\n${text}` : text } });
    },
  };
}

const introduction =
  `Skills are instructions for certain tasks. If a task fits the description of a skill, load it with the tool ${names.load} before you begin:`;

/** Returns a schema for texts with these names and descriptions. */
function textsOf<K extends string>(fields: Readonly<Record<K, string>>) {
  const keys = Object.keys(fields) as K[]; // the object has no others
  const described = Object.entries<string>(fields);
  return schemaOf<Readonly<Record<K, string>>>({
    type: "object",
    properties: Object.fromEntries(described.map(([key, description]) => [key, { type: "string", description }])),
    required: keys,
    additionalProperties: false,
  }, (value) => {
    const texts = Object(value);
    const missing = keys.filter((key) => typeof texts[key] !== "string");
    return missing.length > 0
      ? { issues: missing.map((key) => ({ path: [key], message: "expected a text" })) }
      : { value: texts };
  });
}

/** Returns the text that the model reads when it loads a skill. */
function describe({ file: { skill, body }, folder, paths }: SkillContent): string {
  return [
    body,
    ...skill.compatibility ? [`Compatibility: ${skill.compatibility}`] : [],
    ...folder === undefined ? [] : [`The folder of the skill: ${folder}`],
    ...paths.length > 0 ? [`The skill has ${filesOf(paths)}. Read them with ${names.read}.`] : [],
  ].join("\n\n");
}

function filesOf(paths: readonly string[]): string {
  const more = paths.length - maxListed;
  if (paths.length === 0) return "no files";
  return `the files ${paths.slice(0, maxListed).join(", ")}${more > 0 ? `, and ${more} more` : ""}`;
}

/** The bounds of a source, and its place in the list. */
interface Checked extends Bounds {
  readonly insecure: boolean;
  readonly index: number;
}

/** Returns the function that lists the skills of a source. Throws a `TypeError` for a source that cannot be used. */
function listOf<V>(source: SkillSource<V>, { insecure, index, ...bounds }: Checked): ListSkills<V> {
  const operation = `Cannot create skills(): source ${index}`;
  expectNames(operation, source, "files" in source ? ["files", "folders", "trusted"] : ["url", "origins", "trusted"]);
  if ("files" in source) return inFolders(source, bounds);
  for (const url of [source.url, ...source.origins ?? []]) {
    const protocol = URL.canParse(url) ? new URL(url).protocol : undefined;
    if (protocol !== "https:" && !(insecure && protocol === "http:")) {
      throw new TypeError(`${operation} has the URL ${JSON.stringify(url)}; expected an https URL, or \`files\``);
    }
  }
  return atUrl(source, bounds);
}
