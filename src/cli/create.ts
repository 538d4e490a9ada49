/**
 * `jizai create NAME`: a new project, from a template and a package.
 *
 * @module
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, posix, relative, resolve } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import folders from "./templates.json" with { type: "json" };

/** A kind of project. Its files are those of its folder in `examples/templates`; those of an app include the folder `app`. */
interface Template {
  /** A short description, for the usage text. */
  readonly title: string;
  /** The files: path and text. */
  readonly files: Readonly<Record<string, string>>;
  /** The commands that install, test and start a project. */
  readonly commands: readonly string[];
}

const appCommands = ["npm install", "npm test", "npm start"];

/** The templates, by name. */
export const templates: Readonly<Record<string, Template>> = {
  node: { title: "an agent on Node", files: { ...folders.app, ...folders.node }, commands: appCommands },
  deno: {
    title: "an agent on Deno Deploy, with its sessions in Deno KV",
    files: { ...folders.app, ...folders.deno },
    commands: ["deno task test", "deno task start"],
  },
  workers: {
    title: "an agent on Cloudflare Workers, with sessions in D1",
    files: { ...folders.app, ...folders.workers },
    commands: appCommands,
  },
  "durable-objects": {
    title: "an agent on Cloudflare Workers, with a Durable Object for each conversation",
    files: { ...folders.app, ...folders["durable-objects"] },
    commands: appCommands,
  },
  middleware: {
    title: "a middleware, as a package for npm and JSR",
    files: folders.middleware,
    commands: ["npm install", "npm test"],
  },
};

/** The folder into which a local package is unpacked for Deno, which installs no tarballs. */
const vendor = "vendor/jizai";

/** Options of `create()`. */
interface CreateOptions {
  /** The name of the template. Default: `deno` on Deno, otherwise `node`. */
  readonly template?: string | undefined;
  /** The path of a tarball of this package, as `npm pack` makes it. Default: the registry's package, of the version of this command. */
  readonly package?: string | undefined;
}

/**
 * Creates a project in `folder`, whose last part is the project's name. Returns the commands to run next. Throws an `Error` if the folder has files, and a
 * `TypeError` for an invalid name, template or package.
 */
export async function create(folder: string, options: CreateOptions = {}): Promise<string> {
  const target = resolve(folder);
  const template = templateOf(options.template ?? ("deno" in process.versions ? "deno" : "node"));
  const name = nameOf(target);
  const tarball = options.package === undefined ? undefined : await tarballOf(options.package);
  await requireEmpty(target);
  for (const [path, text] of Object.entries(filesFor(name, template))) {
    const local = tarball === undefined ? text : dependingOn(path, text, relative(target, tarball));
    await mkdir(dirname(join(target, path)), { recursive: true });
    await writeFile(join(target, path), local, { mode: isSecret(path) ? 0o600 : 0o666 });
  }
  if (tarball !== undefined && "deno.json" in template.files) await unpack(tarball, join(target, vendor));
  const old = isOldNode(template)
    ? ["", `This is Node ${process.versions.node}; expected Node ${oldestNode} or newer for the project.`]
    : [];
  return [
    `Created ${name}: ${template.title}.`,
    ...old,
    "",
    ...[`cd ${folder}`, ...template.commands].map(indented),
    "",
  ]
    .join("\n");
}

/** The first version of Node that runs TypeScript, which the projects with an app do. */
const oldestNode = "22.18";

/** Whether this is a Node that cannot run a project of the template. */
function isOldNode({ files }: Template): boolean {
  const { node, deno, bun } = process.versions;
  if (deno !== undefined || bun !== undefined || !files["package.json"]?.includes(`"node": ">=${oldestNode}"`)) {
    return false;
  }
  return node.localeCompare(oldestNode, "en", { numeric: true }) < 0;
}

/** Returns the files of a project: path and text. A path of a template has an underscore for its first dot, since npm publishes no `.gitignore`. */
export function filesFor(name: string, { files }: Template): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(files).map(([path, text]) => [path.replace(/^_/, "."), textFor(path, text, name)]),
  );
}

/** Returns the text of a file for a project: its name, its secret, and imports from the folder `app`, which is copied into it. */
function textFor(path: string, text: string, name: string): string {
  const factory = name.replace(/-+(\w)/g, (_, letter: string) => letter.toUpperCase());
  const fromHere = (module: string) => posix.relative(posix.dirname(path), module).replace(/^(?!\.)/, "./");
  return text
    .replace(/"(?:\.\.\/)+app\/([^"]+)"/g, (_, module: string) => `"${fromHere(module)}"`)
    .replace(/my-agent|my-middleware/g, name)
    .replace(/myMiddleware/g, factory)
    .replace("replaced-by-jizai-create-with-a-random-text", () => crypto.randomUUID() + crypto.randomUUID());
}

/** Returns the text of a file for a project that depends on a local package: npm installs it, and Deno links it. */
function dependingOn(path: string, text: string, tarball: string): string {
  if (path === "deno.json") {
    const linked = `{\n  "links": ["./${vendor}"],\n  "nodeModulesDir": "auto",\n  "exclude": ["vendor"],`;
    return text.replace("{", linked).replace(`"jsr:`, `"npm:`);
  }
  if (path !== "package.json") return text;
  const file = JSON.stringify(`file:${tarball.replaceAll("\\", "/")}`);
  return text.replace(/(?<="@jizai\/jizai": )"[^"]+"/, () => file);
}

/** Unpacks the files of a package into `folder`. */
async function unpack(tarball: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await promisify(execFile)("tar", ["-xzf", tarball, "--strip-components=1", "-C", folder]);
}

/** True for a file with secrets, which other users of the machine must not read. */
function isSecret(path: string): boolean {
  return /^\.(env|dev\.vars)$/.test(basename(path));
}

function indented(line: string): string {
  return `  ${line}`;
}

function templateOf(name: string): Template {
  const template = Object.hasOwn(templates, name) ? templates[name] : undefined;
  if (template) return template;
  const names = Object.keys(templates).join(", ");
  throw new TypeError(`Cannot create from the template "${name}": expected one of ${names}`);
}

/** Returns the name of the project. The registries and Cloudflare accept it as it is. */
function nameOf(target: string): string {
  const name = basename(target);
  if (/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) return name;
  throw new TypeError(
    `Cannot create "${name}": expected a name of lower-case letters, digits and hyphens, such as my-agent`,
  );
}

/** Returns the absolute path of a tarball. */
async function tarballOf(path: string): Promise<string> {
  try {
    const [first, second] = await readFile(path);
    if (first === 0x1f && second === 0x8b) return resolve(path); // the signature of gzip
  } catch (cause) {
    throw new TypeError(`Cannot use the package "${path}": it is not readable`, { cause });
  }
  throw new TypeError(`Cannot use the package "${path}": expected a tarball, as npm pack makes it`);
}

async function requireEmpty(target: string): Promise<void> {
  await mkdir(target, { recursive: true });
  if ((await readdir(target)).length > 0) throw new Error(`Cannot create "${target}": the folder is not empty`);
}
