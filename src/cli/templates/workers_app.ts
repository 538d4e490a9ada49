/**
 * An app for Cloudflare Workers.
 *
 * @module
 */
import { appFiles, appReadme } from "./app_files.ts";
import { json, node, packageJson, type Project, type Template, tsconfig } from "./template.ts";

const worker = `/**
 * Serves the agent on Cloudflare Workers. A D1 database has the sessions and the events of the runs.
 *
 * @module
 */
import { serve, type ServedApp, workers } from "@jizai/jizai";
import { playground } from "@jizai/jizai/playground";
import { type D1, d1Log, d1Store, migrate } from "@jizai/jizai/session/d1";
import type { ExecutionContext } from "hono";
import { assistant } from "./agent.ts";
import { refuseOtherHosts } from "./local.ts";
import type { Keys } from "./model.ts";

/** The bindings and secrets of the Worker. */
interface Env extends Keys {
  readonly DB: D1;
  /** Set by \`npm start\`: only this machine may connect. */
  readonly LOCAL_ONLY?: string;
}

let app: ServedApp | undefined;

export default {
  async fetch(request: Request, env: Env, ctx: ExecutionContext): Promise<Response> {
    const refusal = env.LOCAL_ONLY ? refuseOtherHosts(request) : undefined;
    if (refusal) return refusal;
    if (!app) await migrate(env.DB); // creates the tables that are missing
    app ??= serve(assistant, {
      vars: () => env,
      store: d1Store(env.DB),
      log: d1Log(env.DB), // a client that reconnects receives the events that it missed
      onClientGone: "detach", // a run continues for half a minute when its client disconnects
      limits: workers, // at most six open connections
      page: playground(),
    });
    return await app.fetch(request, env, ctx);
  },
};
`;

const deploying = `## Deployment

\`\`\`sh
npx wrangler login
npm run deploy          # creates the database of \`wrangler.jsonc\`, too
npx wrangler secret put OPENAI_API_KEY
\`\`\`

Sessions and events live in the D1 database \`DB\`. A conversation continues, and a question can be answered later, on every
isolate. A run itself lives in one request: Cloudflare ends it half a minute after its client has left. For runs that
outlive their clients, create the project with \`--template durable-objects\`.
`;

const commands = ["npm install", "npm test", "npm start"];

/** The fields of `wrangler.jsonc` that every Worker has. */
export function wranglerJson({ name }: Project, fields: Readonly<Record<string, unknown>> = {}): string {
  return json({
    $schema: "node_modules/wrangler/config-schema.json",
    name,
    main: "src/worker.ts",
    compatibility_date: "2026-11-17",
    send_metrics: false,
    ...fields,
  });
}

/** Returns the `package.json` of a Worker. */
export function workerPackage(project: Project): string {
  return packageJson(project, {
    scripts: {
      start: "wrangler dev --port 8000 --var LOCAL_ONLY:yes",
      deploy: "wrangler deploy",
      test: `tsc && ${node} --test`,
    },
    devDependencies: { wrangler: "^4.164.0" },
    // npm asks about packages with install scripts; these work without
    allowScripts: { esbuild: false, fsevents: false, sharp: false, workerd: false },
  });
}

/** An app for Cloudflare Workers, with sessions in D1. */
export const workersApp: Template = {
  title: "an agent on Cloudflare Workers, with sessions in D1",
  commands,
  files: (project) => ({
    ...appFiles,
    ".gitignore": "node_modules/\n.wrangler/\n.dev.vars\n",
    "README.md": appReadme(project.name, commands, "npx jizai chat http://localhost:8000", deploying),
    "package.json": workerPackage(project),
    "src/worker.ts": worker,
    "tsconfig.json": tsconfig(["src", "tests"]),
    "wrangler.jsonc": wranglerJson(project, { d1_databases: [{ binding: "DB", database_name: project.name }] }),
  }),
};
