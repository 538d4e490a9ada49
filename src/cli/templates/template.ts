/**
 * Templates: the files of a new project, as text.
 *
 * @module
 */

/** The facts that the files of a project depend on. */
export interface Project {
  /** The name of the project, in lower-case letters, digits and hyphens. */
  readonly name: string;
  /** The version range of this package. */
  readonly range: string;
  /** The path of a tarball of this package that is used instead of a registry, from the project's folder. */
  readonly tarball?: string;
  /** A random text that no one else knows. */
  readonly secret: string;
}

/** The files of a project: path and text. */
export type Files = Readonly<Record<string, string>>;

/** A kind of project. */
export interface Template {
  /** A short description, for the usage text. */
  readonly title: string;
  /** Returns the files of a project. */
  readonly files: (project: Project) => Files;
  /** The commands that install, test and start a project. */
  readonly commands: readonly string[];
  /** The folder into which a tarball is unpacked. Default: npm installs the tarball. */
  readonly unpacked?: string;
}

/** Returns a JSON file. */
export function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Runs TypeScript on Node 22 without the warning that this is new there. */
export const node = "node --disable-warning=ExperimentalWarning";

/** Returns the `package.json` of a project whose dependencies npm installs. */
export function packageJson({ name, range, tarball }: Project, fields: {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}): string {
  return json({
    name,
    version: "0.1.0",
    private: true,
    type: "module",
    engines: { node: ">=22.18" },
    ...fields,
    dependencies: {
      "@jizai/jizai": tarball === undefined ? range : `file:${tarball}`,
      hono: "^4.13.19",
      zod: "^4.4.0",
      ...fields.dependencies,
    },
    devDependencies: { "@types/node": "^22.18.0", typescript: "^7.0.2", ...fields.devDependencies },
  });
}

/** Returns the `tsconfig.json` of a project that runs its sources as they are. */
export function tsconfig(include: readonly string[], options: Readonly<Record<string, unknown>> = {}): string {
  return json({
    compilerOptions: {
      target: "ES2024",
      lib: ["ES2024", "DOM", "DOM.Iterable"],
      module: "NodeNext",
      types: ["node"],
      strict: true,
      noUncheckedIndexedAccess: true,
      verbatimModuleSyntax: true,
      erasableSyntaxOnly: true,
      allowImportingTsExtensions: true,
      noEmit: true,
      ...options,
    },
    include,
  });
}
