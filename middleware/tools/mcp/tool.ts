/**
 * Reads the tools that an MCP server lists, names them for the model, and keeps lists as long as their server allows. A tool that cannot be used is left out, with the reason, and takes no other one
 * with it.
 *
 * @module
 */
import type { Client } from "@modelcontextprotocol/client";
import { isObject, type UnknownObject } from "../../../src/core/kit.ts";

/** A tool as its server describes it. */
export interface ServerTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: UnknownObject;
  readonly annotations?: { readonly readOnlyHint?: boolean | undefined } | undefined;
}

/** A tool that cannot be used. */
export interface UnusableTool {
  /** The server's own name of the tool. Undefined if it has none. */
  readonly name: string | undefined;
  /** The member that cannot be read, and the expected value. */
  readonly fault: string;
}

/** Reads a tool. Only the members that are used are kept. */
export function readTool(listed: unknown): ServerTool | UnusableTool {
  const { name, title, description, inputSchema, annotations }: UnknownObject = Object(listed);
  const faultOf = (...fault: Parameters<typeof unexpected>) => ({
    name: typeof name === "string" && name !== "" ? name : undefined,
    fault: unexpected(...fault),
  });
  if (typeof name !== "string" || name === "") return faultOf("its `name`", name, "a text");
  if (description !== undefined && typeof description !== "string") {
    return faultOf("its `description`", description, "a text");
  }
  if (!isObject(inputSchema)) return faultOf("its `inputSchema`", inputSchema, "an object");
  if (inputSchema.type !== "object") return faultOf("`inputSchema.type`", inputSchema.type, '"object"');
  const faults: string[] = [];
  const schema = readSchema(inputSchema, { place: "inputSchema", faults });
  if (faults[0] !== undefined) return { name, fault: faults[0] };
  return {
    name,
    inputSchema: schema as UnknownObject, // read from an object
    ...(typeof title === "string" && { title }),
    ...(description !== undefined && { description }),
    ...(isObject(annotations) && { annotations: { readOnlyHint: annotations.readOnlyHint === true } }),
  };
}

/** The deepest schema that is read. */
const maxDepth = 100;

/** The keywords whose value is a list of schemas, an object of schemas, or a schema. */
const listed = /^(anyOf|oneOf|allOf|prefixItems)$/;
const named = /^(properties|patternProperties|\$defs|definitions|dependentSchemas)$/;
const single = /^(items|additionalProperties|not|if|then|else|contains|propertyNames)$/;

/** A place in a schema, and the faults found so far. */
interface Reading {
  readonly place: string;
  readonly faults: string[];
  readonly depth?: number;
}

/**
 * Copies a schema without the keywords that are null, as servers write those that are absent. Adds a fault for a value that providers reject: they reject the
 * whole request, with its other tools.
 */
function readSchema(schema: unknown, { place, faults, depth = 0 }: Reading): unknown {
  if (typeof schema === "boolean") return schema;
  if (!isObject(schema) || depth > maxDepth) {
    faults.push(unexpected(`\`${place}\``, schema, depth > maxDepth ? `at most ${maxDepth} levels` : "a schema"));
    return schema;
  }
  const read = (value: unknown, name: string) =>
    readSchema(value, { place: `${place}.${name}`, faults, depth: depth + 1 });
  const expect = (isExpected: boolean, keyword: string, expected: string) => {
    if (!isExpected) faults.push(unexpected(`\`${place}.${keyword}\``, schema[keyword], expected));
  };
  function readKeyword(keyword: string, value: unknown): unknown {
    if (Array.isArray(value) && (listed.test(keyword) || keyword === "items")) {
      return value.map((each, at) => read(each, `${keyword}.${at}`));
    }
    if (named.test(keyword) && Array.isArray(value) && value.length === 0) return {}; // as PHP writes an empty object
    if (named.test(keyword) && isObject(value)) {
      return Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, read(each, `${keyword}.${name}`)]),
      );
    }
    if (single.test(keyword)) return read(value, keyword);
    expect(!listed.test(keyword), keyword, "a list of schemas");
    expect(!named.test(keyword), keyword, "an object of schemas");
    expect(keyword !== "required" || isListOfTexts(value), keyword, "a list of names");
    expect(keyword !== "type" || typeof value === "string" || isListOfTexts(value), keyword, "the name of a type");
    expect(keyword !== "enum" || Array.isArray(value), keyword, "a list of values");
    return value;
  }
  return Object.fromEntries(
    Object.entries(schema).filter(([keyword, value]) => value !== null || /^(const|default)$/.test(keyword))
      .map(([keyword, value]) => [keyword, readKeyword(keyword, value)]),
  );
}

function isListOfTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function unexpected(subject: string, value: unknown, expected: string): string {
  const shownValue = value === undefined ? "missing" : JSON.stringify(value).slice(0, 100);
  return `${subject} is ${shownValue}; expected ${expected}`;
}

// Names the tools for the model: unique, and accepted by every provider.

/** The longest name that all providers accept. */
const maxLength = 64;

/**
 * Returns the name of each tool of a server, by the server's own name: `mcp__docs__search`, as hooks written for other agents expect it. A name that providers
 * accept never changes. Any other is folded, and ends with a hash of the tool's own name. If two names are equal, the tool with the exact name keeps it,
 * else the first one; the other tool is left out.
 */
export function toolNames(server: string, tools: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const used = new Set<string>();
  const [exact, folded] = [
    tools.filter((tool) => isExact(server, tool)),
    tools.filter((tool) => !isExact(server, tool)),
  ];
  for (const tool of [...exact, ...folded]) {
    const name = nameOf(server, tool);
    if (!used.has(name)) names.set(tool, name);
    used.add(name);
  }
  return names;
}

function isExact(server: string, tool: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(tool) && prefixOf(server).length + tool.length <= maxLength;
}

function nameOf(server: string, tool: string): string {
  if (isExact(server, tool)) return `${prefixOf(server)}${tool}`;
  const folded = `${prefixOf(server)}${tool.replaceAll(/[^A-Za-z0-9_-]/g, "_")}`;
  return `${folded.slice(0, maxLength - 9)}_${hash(tool)}`;
}

/** Returns the beginning of the names of a server's tools. No other server's names have it. */
export function prefixOf(server: string): string {
  return `mcp__${server}__`;
}

/** Returns the FNV-1a hash of a text in 8 hexadecimal digits. */
function hash(text: string): string {
  let sum = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) sum = Math.imul(sum ^ byte, 0x01000193);
  return (sum >>> 0).toString(16).padStart(8, "0");
}

// Keeps the lists of servers: a run that finds one makes no request before its first call.

/** The tools of a server. */
export interface Listed {
  /** Those that can be used. */
  readonly tools: readonly ServerTool[];
  /** The others. */
  readonly unusable: readonly UnusableTool[];
}

/** The tools of a server, and its greeting. */
export interface KnownServer extends Listed {
  readonly greeting: NonNullable<ReturnType<Client["getDiscoverResult"]>>;
}

/** The freshness that a server gives to a list. */
export interface Freshness {
  /** Milliseconds. */
  readonly time: number;
  /** True if the list is the same for all users. */
  readonly isPublic: boolean;
}

/** Reads the freshness of a page. Returns the shorter of two, for all pages of a list. */
export function freshnessOf({ ttlMs, cacheScope }: UnknownObject, before: Freshness = forAll): Freshness {
  const time = Number.isSafeInteger(ttlMs) && Number(ttlMs) > 0 ? Number(ttlMs) : 0;
  return { time: Math.min(time, before.time), isPublic: before.isPublic && cacheScope === "public" };
}

/** The longest freshness: a day. */
const forAll: Freshness = { time: 86_400_000, isPublic: true };

/** The most characters of all lists that are kept. A server has one for each user whose list is private. */
const maxListed = 10_000_000;

/** The servers that an agent knows. */
export interface KnownServers {
  /** Returns what is known of a server to a user. `user` is undefined if nothing tells its users apart. */
  get(server: string, user: string | undefined): KnownServer | undefined;
  /** Keeps a list while it is fresh. A private one without a user is not kept. */
  set(server: string, user: string | undefined, known: KnownServer, freshness: Freshness): void;
  /** Forgets a list that led to a failure. */
  forget(known: KnownServer): void;
}

/** Creates the list of servers that an agent knows: it is empty. */
export function knownServers(): KnownServers {
  const lists = new Map<string, { readonly known: KnownServer; readonly until: number; readonly length: number }>();
  let total = 0;
  const keyOf = (server: string, user?: string) => JSON.stringify([server, user]);

  function drop(key: string): void {
    total -= lists.get(key)?.length ?? 0;
    lists.delete(key);
  }

  return {
    get(server, user) {
      for (const key of user === undefined ? [keyOf(server)] : [keyOf(server), keyOf(server, user)]) {
        const list = lists.get(key);
        if (list && Date.now() < list.until) return list.known;
        drop(key);
      }
      return undefined;
    },
    set(server, user, known, { time, isPublic }) {
      if (time === 0 || (!isPublic && user === undefined)) return;
      const key = keyOf(server, isPublic ? undefined : user);
      const { length } = JSON.stringify([key, known]);
      drop(key);
      lists.set(key, { known, until: Date.now() + time, length });
      total += length;
      for (const oldest of lists.keys()) if (total > maxListed) drop(oldest);
    },
    forget(known) {
      for (const [key, list] of lists) if (list.known === known) drop(key);
    },
  };
}
