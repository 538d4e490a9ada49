/**
 * The command line, on Node, Deno and Bun: `npx @jizai/jizai` or `deno run -A jsr:@jizai/jizai/cli`.
 *
 * @module
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { chat } from "./chat.ts";
import { create, templates } from "./create.ts";
import { explainFile, replayFile, replayWith } from "./explain_file.ts";
import { messageOf, openTerminal, type Terminal, visible } from "./terminal.ts";
import { schema as d1 } from "../session/batch_sql/batch.ts";
import { schema as postgres } from "../session/postgres/sql.ts";
import { schema as sqlite } from "../session/sqlite.ts";
export type { AskOptions, Keyboard, Terminal } from "./terminal.ts";

// `jizai schema DATABASE`: the tables of sessions and of texts by key, as SQL.

const schemas: ReadonlyMap<string, string> = new Map([
  ["d1", d1],
  ["libsql", d1],
  ["postgres", postgres],
  ["sqlite", sqlite],
]);

/** Returns the schema for a database, as SQL that changes nothing where it exists. Throws a `TypeError` for an unknown database. */
function schemaOf(database: string): string {
  const found = schemas.get(database);
  if (found !== undefined) return found;
  throw new TypeError(`Cannot print the schema of "${database}": expected one of ${[...schemas.keys()].join(", ")}`);
}

// The commands by name, with their arguments and their help.

const usage = `Usage: jizai COMMAND

  create NAME [--template TEMPLATE]      creates a project in the folder NAME; --package TARBALL uses a local package
  chat URL [--header "NAME: VALUE"]...   converses with the agent that is served at URL; a line during a run steers it, Ctrl-C stops it
  explain FILE                           prints the hooks and tools of the agents that FILE exports
  replay FILE [--agent MODULE]           prints a recorded run; with an agent, runs it again and prints the differences
  schema DATABASE                        prints the tables for d1, libsql, postgres or sqlite as SQL

Templates:

${Object.entries(templates).map(([name, { title }]) => `  ${name.padEnd(17)}${title}`).join("\n")}
`;

/** A command: what it does with its argument and options. */
type Command = (argument: string, options: Options, terminal: Terminal) => Promise<void>;

/** The options of all commands. */
interface Options {
  readonly agent?: string | undefined;
  readonly header: readonly string[];
  readonly package?: string | undefined;
  readonly template?: string | undefined;
}

const commands: Readonly<Record<string, Command>> = {
  create: async (folder, options, terminal) => terminal.write(await create(folder, options)),
  chat: (url, { header }, terminal) => chat(url, terminal, { headers: headersOf(header) }),
  replay: async (file, { agent }, terminal) =>
    terminal.write(`${agent === undefined ? await replayFile(file) : await replayWith(file, agent)}\n`),
  explain: async (file, _options, terminal) => terminal.write(`${await explainFile(file)}\n`),
  schema(database, _options, terminal) {
    terminal.write(schemaOf(database));
    return Promise.resolve();
  },
};

/**
 * Runs the command that `args` name, such as `["chat", "http://localhost:8000"]`. Returns the exit code: 0, 1 if the command fails, or 2 if the arguments are
 * wrong.
 */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        agent: { type: "string" },
        header: { type: "string", multiple: true, default: [] },
        help: { type: "boolean", short: "h" },
        package: { type: "string" },
        template: { type: "string" },
      },
    });
    const [name = "", argument, ...rest] = positionals;
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (values.help || !command || argument === undefined || rest.length > 0) {
      terminal.write(usage);
      return values.help ? 0 : 2;
    }
    await command(argument, values, terminal);
    return 0;
  } catch (error) {
    terminal.write(`${visible(messageOf(error))}\n`);
    return isUsageError(error) ? 2 : 1;
  }
}

/** Whether `parseArgs()` rejected the arguments. */
function isUsageError(error: unknown): boolean {
  return error instanceof Error && "code" in error && `${error.code}`.startsWith("ERR_PARSE_ARGS");
}

/** Parses headers, each written as `name: value`. */
function headersOf(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(lines.map((line) => {
    const [, name, value] = line.match(/^([^:\s]+):\s*(.*)$/) ?? [];
    if (name === undefined || value === undefined) {
      throw new TypeError(`Cannot send the header "${line}": expected "NAME: VALUE"`);
    }
    return [name, value];
  }));
}

/** Runs the command of the process, on its terminal. */
export async function run(): Promise<void> {
  const terminal = openTerminal();
  process.exitCode = await main(process.argv.slice(2), terminal);
  terminal.close();
}

if (import.meta.main) await run();
