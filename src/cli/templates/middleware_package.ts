/**
 * A package with a middleware, for npm and JSR.
 *
 * @module
 */
import { middlewareReadme, middlewareSource, middlewareTest } from "./middleware_files.ts";
import { json, node, type Project, type Template, tsconfig } from "./template.ts";

const commands = ["npm install", "npm test"];

/** Returns the name of the factory: `my-middleware` exports `myMiddleware`. */
function factoryOf(name: string): string {
  return name.replace(/-+(\w)/g, (_, letter: string) => letter.toUpperCase());
}

const workflow = `name: test
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        node: [22, 24]
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-node@v5
        with:
          node-version: \${{ matrix.node }}
      - run: npm install
      - run: npm test
`;

const license = `MIT License

Copyright (c) the authors

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`;

/** Returns the `package.json`. The package needs Jizai as a peer, so that an app has one copy of it. */
function manifest({ name, range, tarball }: Project): string {
  return json({
    name,
    version: "0.1.0",
    description: "A middleware for Jizai: limits the tool calls of a run",
    keywords: ["agent", "jizai", "middleware"],
    license: "MIT",
    type: "module",
    exports: { ".": { types: "./dist/mod.d.ts", default: "./dist/mod.js" } },
    files: ["dist"],
    sideEffects: false,
    engines: { node: ">=22" },
    scripts: {
      build: "tsc --project tsconfig.build.json",
      test: `npm run build && tsc && ${node} --test`,
      prepublishOnly: "npm test",
      "publish:npm": "npm publish --access public",
      "publish:jsr": "npx -y jsr publish",
    },
    peerDependencies: { "@jizai/jizai": range },
    devDependencies: {
      "@jizai/jizai": tarball === undefined ? range : `file:${tarball}`,
      "@types/node": "^22.18.0",
      hono: "^4.13.19",
      typescript: "^7.0.2",
      zod: "^4.4.0",
    },
  });
}

/** A package with a middleware: its test, an executed README example, CI, and scripts that publish to npm and JSR. */
export const middlewarePackage: Template = {
  title: "a middleware, as a package for npm and JSR",
  commands,
  files(project) {
    const { name, range } = project;
    const factory = factoryOf(name);
    return {
      ".github/workflows/test.yml": workflow,
      ".gitignore": "node_modules/\ndist/\n*.tgz\ntests/readme_example.ts\n",
      LICENSE: license,
      "README.md": middlewareReadme(name, factory),
      "jsr.json": json({
        name: `@your-scope/${name}`,
        version: "0.1.0",
        license: "MIT",
        exports: "./src/mod.ts",
        imports: { "@jizai/jizai": `jsr:@jizai/jizai@${range}` },
        publish: { include: ["LICENSE", "README.md", "jsr.json", "src"] },
      }),
      "package.json": manifest(project),
      "src/mod.ts": middlewareSource(name, factory),
      "tests/mod.test.ts": middlewareTest(factory),
      "tsconfig.build.json": json({
        extends: "./tsconfig.json",
        compilerOptions: {
          noEmit: false,
          declaration: true,
          outDir: "dist",
          rewriteRelativeImportExtensions: true,
          rootDir: "src",
        },
        include: ["src"],
      }),
      "tsconfig.json": tsconfig(["src", "tests"], { erasableSyntaxOnly: undefined }), // JSR would check dependencies with it
    };
  },
};
