/**
 * An app for Node.
 *
 * @module
 */
import { appFiles, appReadme } from "./app_files.ts";
import { node, packageJson, type Template, tsconfig } from "./template.ts";

const main = `/**
 * Serves the agent on Node.
 *
 * @module
 */
import { serve as listen } from "@hono/node-server";
import { serve } from "@jizai/jizai";
import { playground } from "@jizai/jizai/playground";
import { memoryLog } from "@jizai/jizai/session/log";
import process from "node:process";
import { assistant } from "./agent.ts";
import { refuseOtherHosts } from "./local.ts";

const closing = new AbortController();
const app = serve(assistant, {
  vars: () => process.env,
  page: playground(),
  log: memoryLog(), // a client that reconnects receives the events that it missed
  onClientGone: "detach", // a run continues when its client disconnects
  signal: closing.signal,
});

const hostname = process.env.HOST ?? "localhost";
const isLocal = ["localhost", "127.0.0.1", "::1"].includes(hostname);

function fetch(request: Request): Response | Promise<Response> {
  const refusal = isLocal ? refuseOtherHosts(request) : undefined;
  return refusal ?? app.fetch(request);
}

const server = listen({ fetch, hostname, port: Number(process.env.PORT ?? 8000) }, ({ port }) => {
  console.log("The agent is at http://" + hostname + ":" + port);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    closing.abort();
    server.close();
  });
}
`;

const deploying = `## Deployment

\`PORT\` and \`HOST\` set the address: in a container, \`HOST=0.0.0.0\`. Sessions live in the memory of the process. To keep
them, pass a \`store\` and a \`log\` to \`serve()\` in \`src/main.ts\`, such as those of \`@jizai/jizai/session/postgres\`.
`;

const commands = ["npm install", "npm test", "npm start"];

/** An app for Node, with `@hono/node-server`. */
export const nodeApp: Template = {
  title: "an agent on Node",
  commands,
  files: (project) => ({
    ...appFiles,
    ".env": "# OPENAI_API_KEY=\n# ANTHROPIC_API_KEY=\n",
    ".gitignore": "node_modules/\n.env\n",
    "README.md": appReadme(project.name, commands, "npx jizai chat http://localhost:8000", deploying),
    "package.json": packageJson(project, {
      scripts: {
        start: `${node} --env-file-if-exists=.env src/main.ts`,
        dev: `${node} --env-file-if-exists=.env --watch src/main.ts`,
        test: `tsc && ${node} --test`,
      },
      dependencies: { "@hono/node-server": "^2.1.8" },
    }),
    "src/main.ts": main,
    "tsconfig.json": tsconfig(["src", "tests"]),
  }),
};
