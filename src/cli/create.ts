/**
 * `jizai create NAME`: a new project, from a template and a package.
 *
 * @module
 */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, normalize, relative, resolve } from "node:path";
import process from "node:process";
import { gunzipSync } from "node:zlib";
import { denoApp } from "./templates/deno_app.ts";
import { durableObjectsApp } from "./templates/durable_objects_app.ts";
import { middlewarePackage } from "./templates/middleware_package.ts";
import { nodeApp } from "./templates/node_app.ts";
import type { Template } from "./templates/template.ts";
import { workersApp } from "./templates/workers_app.ts";

// The version of this package.

/** The version of the command line, which created projects depend on. A test compares it with `deno.json`. */
export const version = "0.1.0";

// Unpacks npm tarballs.

/** The bytes of a header, and the size to which files are padded. */
const block = 512;

/** The folder that contains all files of an npm package. */
const prefix = "package/";

/** Unpacks the files of a package into `folder`. Throws an `Error` if `bytes` are not an npm tarball. */
export async function unpack(bytes: Uint8Array, folder: string): Promise<void> {
  for (const [path, content] of filesOf(gunzipSync(bytes))) {
    const target = join(folder, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, content);
  }
}

/** Yields the path and content of each regular file in an archive of the format `ustar`. */
function* filesOf(archive: Uint8Array): Generator<[path: string, content: Uint8Array]> {
  let found = 0;
  for (let start = 0; start + block <= archive.length;) {
    const field = (offset: number, length: number) =>
      new TextDecoder().decode(archive.subarray(start + offset, start + offset + length)).replace(/\0[^]*$/, "");
    const name = field(0, 100);
    if (name === "") break; // the end of an archive is empty blocks
    const size = Number.parseInt(field(124, 12), 8);
    const path = [field(345, 155), name].filter((part) => part !== "").join("/");
    const content = archive.subarray(start + block, start + block + size);
    if (["", "0"].includes(field(156, 1))) {
      yield [pathIn(path), content];
      found++;
    }
    start += block + Math.ceil(size / block) * block;
  }
  if (found === 0) throw new Error("Cannot unpack the package: the tarball has no files");
}

/** Returns the path of a file within its package. Throws an `Error` for a path that leads out of it. */
function pathIn(path: string): string {
  const inside = normalize(path.slice(prefix.length));
  if (!path.startsWith(prefix) || inside.startsWith("..")) {
    throw new Error(`Cannot unpack "${path}": expected a path in "${prefix}"`);
  }
  return inside;
}

// The command.

/** The templates, by name. */
export const templates: Readonly<Record<string, Template>> = {
  node: nodeApp,
  deno: denoApp,
  workers: workersApp,
  "durable-objects": durableObjectsApp,
  middleware: middlewarePackage,
};

/** Options of `create()`. */
export interface CreateOptions {
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
  const files = template.files({
    name,
    range: `^${version}`,
    secret: crypto.randomUUID() + crypto.randomUUID(),
    ...(tarball && { tarball: relative(target, tarball.path).replaceAll("\\", "/") }),
  });
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(target, path)), { recursive: true });
    await writeFile(join(target, path), text, { mode: isSecret(path) ? 0o600 : 0o666 });
  }
  if (tarball && template.unpacked !== undefined) await unpack(tarball.bytes, join(target, template.unpacked));
  return [`Created ${name}: ${template.title}.`, "", ...[`cd ${folder}`, ...template.commands].map(indented), ""]
    .join("\n");
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

/** Reads a tarball. */
async function tarballOf(path: string): Promise<{ readonly path: string; readonly bytes: Uint8Array }> {
  try {
    const bytes = await readFile(path);
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) return { path: resolve(path), bytes }; // the signature of gzip
  } catch (cause) {
    throw new TypeError(`Cannot use the package "${path}": it is not readable`, { cause });
  }
  throw new TypeError(`Cannot use the package "${path}": expected a tarball, as npm pack makes it`);
}

async function requireEmpty(target: string): Promise<void> {
  await mkdir(target, { recursive: true });
  if ((await readdir(target)).length > 0) throw new Error(`Cannot create "${target}": the folder is not empty`);
}
