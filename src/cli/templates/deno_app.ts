/**
 * An app for Deno and Deno Deploy.
 *
 * @module
 */
import { appFiles, appReadme } from "./app_files.ts";
import { json, type Project, type Template } from "./template.ts";

const main = `/**
 * Serves the agent on Deno and Deno Deploy. Its sessions are in Deno KV.
 *
 * @module
 */
import { serve } from "@jizai/jizai";
import { playground } from "@jizai/jizai/playground";
import { denoKvLog, denoKvStore } from "@jizai/jizai/session/deno_kv";
import { assistant } from "./src/agent.ts";
import { refuseOtherHosts } from "./src/local.ts";

const kv = await Deno.openKv();
const closing = new AbortController();

// Deno Deploy and Ctrl-C send SIGINT, containers SIGTERM. Streams end, and another process continues the runs.
for (const signal of Deno.build.os === "windows" ? ["SIGINT"] as const : ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(signal, () => closing.abort());
}

const app = serve(assistant, {
  vars: () => ({
    OPENAI_API_KEY: Deno.env.get("OPENAI_API_KEY"),
    ANTHROPIC_API_KEY: Deno.env.get("ANTHROPIC_API_KEY"),
  }),
  page: playground(),
  store: denoKvStore(kv),
  log: denoKvLog(kv), // a client that reconnects receives the events that it missed
  onClientGone: "detach", // a run continues when its client disconnects
  signal: closing.signal,
});

const isLocal = Deno.args.includes("--local"); // as \`deno task start\` passes it

export default {
  fetch(request: Request, info: Deno.ServeHandlerInfo): Response | Promise<Response> {
    const refusal = isLocal ? refuseOtherHosts(request) : undefined;
    return refusal ?? app.fetch(request, info);
  },
};
`;

const deploying = `## Deployment

On Deno Deploy, the entrypoint is \`main.ts\`. Assign a Deno KV database to the app, and set the API key as an environment
variable.
`;

const vendor = "vendor/jizai";
const commands = ["deno task test", "deno task start"];

/** Returns `deno.json`. A local package is unpacked and linked. */
function denoJson({ range, tarball }: Project): string {
  const env = "--allow-env=OPENAI_API_KEY,ANTHROPIC_API_KEY";
  return json({
    imports: {
      "@jizai/jizai": `${tarball === undefined ? "jsr" : "npm"}:@jizai/jizai@${range}`,
      hono: "npm:hono@^4.13.19",
      zod: "npm:zod@^4.4.0",
    },
    ...(tarball !== undefined && { links: [`./${vendor}`], nodeModulesDir: "auto" }),
    tasks: {
      start: `deno serve --host localhost --port 8000 --allow-net ${env} main.ts --local`,
      test: "deno check && deno test",
    },
    unstable: ["kv", "no-legacy-abort"],
    compilerOptions: { strict: true, noUncheckedIndexedAccess: true, verbatimModuleSyntax: true },
    ...(tarball !== undefined && { exclude: ["vendor"] }),
  });
}

/** An app for Deno and Deno Deploy. */
export const denoApp: Template = {
  title: "an agent on Deno Deploy, with its sessions in Deno KV",
  commands,
  unpacked: vendor,
  files: (project) => ({
    ...appFiles,
    ".gitignore": "node_modules/\n.env\n",
    "README.md": appReadme(
      project.name,
      commands,
      "deno run -A jsr:@jizai/jizai/cli chat http://localhost:8000",
      deploying,
    ),
    "deno.json": denoJson(project),
    "main.ts": main,
  }),
};
