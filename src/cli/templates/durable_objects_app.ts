/**
 * An app for Cloudflare Workers with Durable Objects.
 *
 * @module
 */
import { appFiles, appReadme } from "./app_files.ts";
import type { Template } from "./template.ts";
import { tsconfig } from "./template.ts";
import { workerPackage, wranglerJson } from "./workers_app.ts";

const worker = `/**
 * Forwards each request to the Durable Object of its conversation.
 *
 * @module
 */
import { forward, type Stub } from "@jizai/jizai/forward";
import { Hono } from "hono";
import { keysOf, type Settings } from "./conversation.ts";
import { refuseOtherHosts } from "./local.ts";

export { Conversation } from "./conversation.ts";

interface Env extends Settings {
  readonly CONVERSATION: { getByName(name: string): Stub };
  /** Set by \`npm start\`: only this machine may connect. */
  readonly LOCAL_ONLY?: string;
}

export default new Hono<{ Bindings: Env }>()
  .use(async (c, next) => (c.env.LOCAL_ONLY ? refuseOtherHosts(c.req.raw) : undefined) ?? await next())
  .get("/", (c) => c.redirect("/my-conversation"))
  .all("/:conversation/*", (c) => {
    const user = "guest"; // the user that your authentication found
    const name = JSON.stringify([user, c.req.param("conversation")]); // conversations of different users are different
    return forward(c, c.env.CONVERSATION.getByName(name), { user }, { keys: keysOf(c.env) });
  });
`;

const conversation = `/**
 * One conversation: a Durable Object, whose storage has its session and the events of its runs.
 *
 * @module
 */
import { serve, type ServedApp, workers } from "@jizai/jizai";
import { forwarded, type SecretKey } from "@jizai/jizai/forward";
import { playground } from "@jizai/jizai/playground";
import {
  durableObjectLog,
  durableObjectStore,
  type ObjectAlarm,
  type ObjectStorage,
} from "@jizai/jizai/session/durable_object";
import { type ExecutionContext, Hono } from "hono";
import { assistant } from "./agent.ts";
import type { Keys } from "./model.ts";

/** The settings of the Worker. */
export interface Settings extends Keys {
  /** At least 32 characters that no one else knows. The Worker signs with it the requests that it forwards. */
  readonly FORWARD_SECRET: string;
}

/** Returns the keys with which the Worker signs, and the object verifies. */
export function keysOf({ FORWARD_SECRET }: Settings): readonly SecretKey[] {
  return [{ id: "k1", secret: FORWARD_SECRET }];
}

/** The context of an object. */
interface ObjectContext extends ExecutionContext {
  readonly storage: ObjectStorage & ObjectAlarm;
}

/** The class of the objects. */
export class Conversation {
  readonly #ctx: ObjectContext;
  readonly #served: ServedApp;
  readonly #app: Hono;

  constructor(ctx: ObjectContext, settings: Settings) {
    const claims = forwarded<{ user: string }>({ keys: keysOf(settings) });
    this.#served = serve(assistant, {
      vars: () => settings,
      recoveryVars: () => settings,
      owner: async (c) => (await claims(c)).user,
      session: (c) => c.req.param("conversation"),
      store: durableObjectStore(ctx.storage, { alarm: ctx.storage }), // an object that was killed starts again
      log: durableObjectLog(ctx.storage), // a client that reconnects receives the events that it missed
      singleProcess: true, // there is one object of a name
      limits: workers, // at most six open connections
      onClientGone: "detach", // a run continues when its client disconnects
      page: playground(),
    });
    this.#ctx = ctx;
    this.#app = new Hono().route("/:conversation", this.#served);
  }

  /** Continues a run whose object was killed, although no client asks. */
  async alarm(): Promise<void> {
    const { over } = await this.#served.recover();
    await over;
  }

  /** Answers a request that the Worker forwards. */
  fetch(request: Request): Response | Promise<Response> {
    return this.#app.fetch(request, {}, this.#ctx);
  }
}
`;

const deploying =
  `The first part of a path names the conversation. Each one has a Durable Object, which keeps its session and its runs.

## Deployment

\`\`\`sh
openssl rand -hex 32 | npx wrangler secret put FORWARD_SECRET
npx wrangler secret put OPENAI_API_KEY
npm run deploy
\`\`\`

\`.dev.vars\` has the secrets of your machine. Do not commit it.
`;

const commands = ["npm install", "npm test", "npm start"];

/** An app for Cloudflare Workers, with one Durable Object for each conversation. */
export const durableObjectsApp: Template = {
  title: "an agent on Cloudflare Workers, with a Durable Object for each conversation",
  commands,
  files: (project) => ({
    ...appFiles,
    ".dev.vars": `FORWARD_SECRET=${project.secret}\n`,
    ".gitignore": "node_modules/\n.wrangler/\n.dev.vars\n",
    "README.md": appReadme(project.name, commands, "npx jizai chat http://localhost:8000/my-conversation", deploying),
    "package.json": workerPackage(project),
    "src/conversation.ts": conversation,
    "src/worker.ts": worker,
    "tsconfig.json": tsconfig(["src", "tests"]),
    "wrangler.jsonc": wranglerJson(project, {
      durable_objects: { bindings: [{ name: "CONVERSATION", class_name: "Conversation" }] },
      migrations: [{ tag: "v1", new_sqlite_classes: ["Conversation"] }],
    }),
  }),
};
