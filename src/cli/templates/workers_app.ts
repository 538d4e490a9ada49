/**
 * An app for Cloudflare Workers.
 *
 * @module
 */
import { appFiles, appReadme } from "./app_files.ts";
import { json, node, packageJson, type Project, type Template, tsconfig } from "./template.ts";

const worker = `/**
 * Serves the agent on Cloudflare Workers.
 *
 * @module
 */
import { serve, workers } from "@jizai/jizai";
import { playground } from "@jizai/jizai/playground";
import { assistant } from "./agent.ts";

export default serve(assistant, {
  vars: (c) => c.env, // the secrets of the Worker
  limits: workers, // at most six open connections
  page: playground(),
  onError: (error, { id }) => console.error(id, error),
});
`;

const deploying = `## Deployment

\`\`\`sh
npx wrangler secret put OPENAI_API_KEY
npm run deploy
\`\`\`

Sessions live in the memory of one isolate, which Cloudflare may end at any time. For conversations that continue, and for
approvals that take longer, create the project with \`--template durable-objects\`.
`;

const commands = ["npm install", "npm test", "npm start"];

/** The fields of \`wrangler.jsonc\` that every Worker has. */
export function wranglerJson({ name }: Project, fields: Readonly<Record<string, unknown>> = {}): string {
  return json({
    $schema: "node_modules/wrangler/config-schema.json",
    name,
    main: "src/worker.ts",
    compatibility_date: "2026-10-01",
    send_metrics: false,
    ...fields,
  });
}

/** Returns the `package.json` of a Worker. */
export function workerPackage(project: Project): string {
  return packageJson(project, {
    scripts: { start: "wrangler dev --port 8000", deploy: "wrangler deploy", test: `tsc && ${node} --test` },
    devDependencies: { wrangler: "^4.164.0" },
    // npm asks about packages with install scripts; these work without
    allowScripts: { esbuild: false, fsevents: false, sharp: false, workerd: false },
  });
}

/** An app for Cloudflare Workers. */
export const workersApp: Template = {
  title: "an agent on Cloudflare Workers",
  commands,
  files: (project) => ({
    ...appFiles,
    ".gitignore": "node_modules/\n.wrangler/\n.dev.vars\n",
    "README.md": appReadme(project.name, commands, "npx jizai chat http://localhost:8000", deploying),
    "package.json": workerPackage(project),
    "src/worker.ts": worker,
    "tsconfig.json": tsconfig(["src", "tests"]),
    "wrangler.jsonc": wranglerJson(project),
  }),
};
