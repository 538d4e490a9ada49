/**
 * Approval links: each approves or denies one question of a paused run, for people who have no page of the application open.
 *
 * A link is a text that only its server can make and read: the run, its pause, the call, the decision, and when it expires. `GET` shows the question and
 * never decides, because scanners of mails and previews of chats open links. The form of that page decides, with `POST`.
 *
 * @module
 */
import type { Context } from "hono";
import { html } from "hono/html";
import { Hono } from "hono/tiny";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { delay } from "../core/lib/cancellation.ts";
import { canonicalJson, hashOf } from "../core/lib/json.ts";
import { visible } from "../core/lib/text.ts";
import { SessionError } from "../core/session.ts";
import { errorResponse, shuttingDown } from "./error_response.ts";
import { RequestClient } from "./identify.ts";
import type { Server } from "./operation.ts";
import type { RunEnd } from "./options.ts";
import { emittedForm, type PersonAnswer, type Question } from "../protocol/question.ts";
import { expectNames } from "../protocol/shape.ts";
import { readBytes } from "./request_body.ts";
import type { RecoveredRun } from "../session/record/run_host.ts";
import { lastEventNumber, type QuestionAddress, questionState } from "../session/record/run_state.ts";
import { encryption, type SecretKey } from "../session/resume_token/encryption.ts";

/** Options of `approvalLinks()`. */
export interface ApprovalLinksOptions {
  /** The address of the pages, as browsers reach it. It comes from your configuration, never from a request. */
  readonly url: string;
  /** The first key makes links; every key reads them. To change keys, add the new one as the first, and remove the old one once its links have expired. */
  readonly keys: readonly SecretKey[];
  /** Milliseconds after which a link expires. Default: 86,400,000, a day. */
  readonly expiresIn?: number;
  /** Returns the time in milliseconds since 1970. Default: `Date.now`. */
  readonly now?: () => number;
}

/** A question, and the links that answer it. */
export interface LinkedQuestion extends Question {
  /** The links. Default: a click cannot answer the question, since it asks for a text or for the fields of a form, or is about the whole run. */
  readonly links?: QuestionLinks;
}

/** The links of a question. */
export interface QuestionLinks {
  /** The page on which a person approves the call. */
  readonly approve: string;
  /** The page on which a person denies the call, with a reason if they want. */
  readonly deny: string;
  /** The time when both expire, in milliseconds since 1970. */
  readonly expires: number;
}

/** Makes approval links, and answers them. */
export interface ApprovalLinks {
  /** Returns the questions of a pause, with their links. Returns none for another end of a run. */
  questions(end: RunEnd): Promise<readonly LinkedQuestion[]>;
  /**
   * Returns the pages of the links, for the app that `serve()` has returned. Mount them at `url`, outside of a login if the people who approve have none. Throws a
   * `TypeError` if the runs of the app cannot be answered without their client: they are in resume tokens, or it has `vars` and no `recoveryVars`.
   */
  pages(served: { readonly "~server": object }): Hono;
}

/**
 * Creates links that approve or deny the questions of paused runs. A link answers its own call of its own run, once, until it expires. It does what an answer
 * of the session's owner does, and no more: it approves the input that the person saw, and guards decide again. If a run asks several questions, each link
 * answers one, and the run continues with the calls that are answered. The links of the others stay valid.
 *
 * Everyone who has a link can use it, so send it only to the people who may decide. It is encrypted: it does not show the session, which may be a key to it.
 * Opening a link decides nothing: its page shows the tool and the input, as the clients of the run see them, and a button. If `vars` are made from requests,
 * those of `recoveryVars` are used.
 *
 * Throws a `TypeError` for an address that cannot be used and an invalid key id, and a `RangeError` for no keys, a key that is too short, and an option out of
 * range.
 *
 * ```ts
 * import { agent, serve, tool } from "@jizai/jizai";
 * import { approvalLinks } from "@jizai/jizai/approval_links";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { Hono } from "hono";
 * import * as z from "zod";
 *
 * const keys = [{ id: "k1", secret: "at least 32 bytes of your own choice" }];
 * const links = approvalLinks({ url: "https://example.com/approvals", keys });
 *
 * const input = z.object({ version: z.string() });
 * const deploy = tool({ name: "deploy", description: "Deploys", input, ask: true, execute: () => "Deployed." });
 * const served = serve(agent({ model: scripted({ calls: [["deploy", { version: "v2" }]] }, "Done."), tools: [deploy] }), {
 *   async onEnd(end) {
 *     for (const { tool, links: { approve, deny } = {} } of await links.questions(end)) {
 *       console.log(`Run ${tool}? Yes: ${approve} No: ${deny}`); // or send it to a chat or by mail
 *     }
 *   },
 * });
 * export default new Hono().route("/approvals", links.pages(served)).route("/", served);
 * ```
 */
export function approvalLinks(options: ApprovalLinksOptions): ApprovalLinks {
  expectNames(subject, options, ["url", "keys", "expiresIn", "now"]);
  const { url, keys, expiresIn = 86_400_000, now = Date.now } = options;
  const base = baseOf(url);
  const { encrypt, decrypt } = encryption("jizai.approvalLink", keys);
  if (!(expiresIn > 0 && expiresIn < Infinity)) {
    throw new RangeError(`${subject}: \`expiresIn\` is ${expiresIn}; expected a positive number of milliseconds`);
  }

  /** Returns the links of a question. */
  async function linksOf(question: ClickQuestion, pause: Pause): Promise<QuestionLinks> {
    const issued = now();
    const expires = issued + expiresIn;
    const shared = { ...pause, callId: question.callId, form: await formOf(question), issued, expires };
    const link = async (decision: Link["decision"]) => {
      const sealed: Link = { decision, ...shared };
      return `${base}/${await encrypt(JSON.stringify(sealed))}`;
    };
    return { approve: await link("approve"), deny: await link("deny"), expires };
  }

  return {
    async questions({ id, event: sent, ...run }) {
      const event = emittedForm(sent);
      if (event.type !== "run.paused") return [];
      const at = Number(id.slice(id.lastIndexOf(":") + 1));
      return await Promise.all(event.questions.map(async (question) => {
        return isForClick(question) ? { ...question, links: await linksOf(question, { ...run, at }) } : question;
      }));
    },
    pages(served) {
      const server = served["~server"] as Server; // serve() made it
      expectAnswerable(server);
      return pagesOf(server, async (text) => {
        const decrypted = await decrypt(text);
        if ("problem" in decrypted) return "invalid";
        const link: Link = JSON.parse(decrypted.content); // authentic, so made by `linksOf()`
        return now() < link.expires ? link : "expired";
      });
    },
  };
}

const subject = "Cannot create approvalLinks()";

/** Returns an address without its last slash. Throws a `TypeError` for one under which there can be no pages. */
function baseOf(url: string): string {
  const { protocol = "", search = "", hash = "", href = "" } = URL.parse(url) ?? {};
  if (/^https?:$/.test(protocol) && search === "" && hash === "") return href.replace(/\/$/, "");
  throw new TypeError(`${subject}: \`url\` is "${url}"; expected an http or https URL without a query`);
}

/** Throws a `TypeError` if only a request of a client can continue the runs of a server. */
function expectAnswerable({ options: { resumeTokens, vars, recoveryVars } }: Server): void {
  const operation = "Cannot answer by links";
  if (resumeTokens) throw new TypeError(`${operation}: clients keep the paused runs; expected no \`resumeTokens\``);
  if (vars && !recoveryVars) {
    throw new TypeError(`${operation}: the vars of runs are made from requests; expected the option recoveryVars`);
  }
}

// A link: the question that it answers, and the decision.

/** The pause of a run at an event. */
interface Pause extends RecoveredRun {
  /** The number of the `run.paused` event. */
  readonly at: number;
}

/** The sealed content of a link. */
interface Link extends QuestionAddress, Pause {
  readonly decision: "approve" | "deny";
  /** The hash of the question as the person saw it. */
  readonly form: string;
  /** In milliseconds since 1970. */
  readonly expires: number;
}

/** A question about one call. */
type ClickQuestion = Question & { readonly callId: string };

/** True if a person can answer with a click: a call waits for its approval. A tool that asks while it runs must not ask for a value. */
function isForClick(question: Question): question is ClickQuestion {
  const { callId, suggestions = [], schema = {} } = question;
  const plain = (type: string) => suggestions.some((each) => each.type === type && Object.keys(each).length === 1);
  const answers: readonly AnswerSchema[] = Array.isArray(schema.oneOf) ? schema.oneOf : [];
  const approval = answers.find(({ properties }) => properties?.type?.const === "approve")?.properties;
  if (callId === undefined || !approval || !plain("approve") || !plain("deny")) return false;
  if (suggestions.some((each) => each.type === "approve" && each.always !== undefined)) return true;
  const { type = "object", properties = {} } = approval.input ?? {};
  return type === "object" && Object.keys(properties).length === 0;
}

/** The part of the schema of an answer that tells what a person is asked for. */
interface AnswerSchema {
  readonly properties?: {
    readonly type?: { readonly const?: unknown };
    readonly input?: { readonly type?: unknown; readonly properties?: object };
  };
}

/** Returns the hash of what a person reads of a question. */
async function formOf({ path, tool, input, questions }: Question): Promise<string> {
  return await hashOf(canonicalJson([path, tool, input, questions]));
}

// The answer of a link. The server handles it as one of the session's owner, without a request of theirs.

/** A question as it stands now. `others` is the number of other open questions. */
type Standing =
  | { readonly state: "open" | "working"; readonly question: Question; readonly others: number; readonly at: number }
  | { readonly state: "closed" | "changed" | "forgotten" };

/** Returns how the question of a link stands now. Its content is the one that clients receive, after every filter. */
async function standingOf({ runs }: Server, link: Link): Promise<Standing> {
  const session = await runs.head(link.session, link);
  const state = questionState(session, link);
  if (state === "closed") return { state };
  const at = state === "open" ? lastEventNumber(session) : link.at;
  const event = await runs.records?.event(link.run, at, link);
  const questions = event?.type === "run.paused" ? event.questions : undefined;
  if (!questions) return { state: "forgotten" };
  const question = questions.find(({ callId }) => callId === link.callId);
  if (!question || (at !== link.at && await formOf(question) !== link.form)) return { state: "changed" };
  return { state, question, others: questions.length - 1, at };
}

/** Milliseconds for which an answer waits while its run works on the answer to another question. */
const patience = 10_000;

/** Answers a question. Returns how it stood at last: "open" if this answer counts. */
async function answer(c: Context, server: Server, link: Link, reason: string): Promise<Standing> {
  const { runs, admissions, options: { signal, recoveryVars } } = server;
  const { session, run, owner, callId, decision } = link;
  const vars = await recoveryVars?.({ run, session, ...(owner !== undefined && { owner }) });
  const client = new RequestClient(c, owner, vars);
  const answer: PersonAnswer = { callId, type: decision, ...(decision === "deny" && reason !== "" && { reason }) };
  const tired = new AbortController();
  const timer = setTimeout(() => tired.abort(), patience);
  try {
    for (;;) {
      if (signal?.aborted) throw shuttingDown();
      const standing = await standingOf(server, link);
      if (standing.state === "working" && !tired.signal.aborted) {
        await runs.records?.untilOver(run, client, tired.signal);
        continue;
      }
      if (standing.state !== "open") return standing;
      const endWait = admissions.admit(false);
      try {
        await runs.launch({ run, session, answers: [answer], pausedAt: standing.at }, client);
        return standing;
      } catch (error) {
        if (tired.signal.aborted || !hasMovedOn(error)) throw error;
        await delay(20, tired.signal).catch(() => {}); // another answer is being saved
      } finally {
        endWait();
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

/** True if another answer was faster. */
function hasMovedOn(error: unknown): boolean {
  return error instanceof SessionError && ["busy", "not-paused", "unasked"].includes(error.code);
}

// The pages.

/** Returns the link that a text is, or the reason why it is none. */
type ReadLink = (text: string) => Promise<Link | "invalid" | "expired">;

/** The maximum number of bytes of a form. */
const maxForm = 16_384;

/** Returns the app that shows the pages of links, and answers their questions. */
function pagesOf(server: Server, readLink: ReadLink): Hono {
  const path = "/:jizai_link"; // an app that mounts the pages may have a parameter of a usual name
  const app = new Hono();

  /** Handles the request of a link. An error becomes a page without its message. */
  async function handle(c: Context, respond: (link: Link) => Promise<Response>): Promise<Response> {
    try {
      const link = await readLink(c.req.param("jizai_link") ?? "");
      return typeof link === "string" ? problemPage(c, link) : await respond(link);
    } catch (error) {
      const { status, headers } = errorResponse(error, c, server.options, { method: "POST", path: "/approvals" });
      const retryAfter = headers.get("retry-after");
      if (retryAfter !== null) c.header("retry-after", retryAfter);
      return problemPage(c, "failed", status as ContentfulStatusCode); // it has a body
    }
  }

  app.get(path, (c) =>
    handle(c, async (link) => {
      const standing = await standingOf(server, link);
      return "question" in standing
        ? questionPage(c, { agent: server.runs.agent.name, link, question: standing.question })
        : problemPage(c, standing.state);
    }));
  app.post(path, (c) =>
    handle(c, async (link) => {
      const form = new URLSearchParams(new TextDecoder().decode(await readBytes(c, maxForm)));
      const standing = await answer(c, server, link, form.get("reason")?.trim() ?? "");
      return standing.state === "open" ? donePage(c, link, standing.others) : problemPage(c, standing.state);
    }));
  return app;
}

/** The statuses and the texts of pages that show no question. */
const problems = {
  invalid: [400, "This link is not valid", "It is incomplete, was changed, or belongs to another server."],
  expired: [410, "This link has expired", "Nothing was decided by it."],
  closed: [
    409,
    "This question is closed",
    "It was answered before, or the run has ended or gone on without an answer.",
  ],
  changed: [
    409,
    "This question has changed",
    "Nothing was decided by this link. A newer message has the new question.",
  ],
  forgotten: [
    410,
    "This question cannot be shown",
    "The server does not keep it any more. Answer it in the application.",
  ],
  working: [503, "The run is working", "It has not asked again yet, and nothing was decided. Try again in a minute."],
  failed: [
    500,
    "Something went wrong",
    "Open the link again in a minute: it shows whether the question is still open.",
  ],
} as const satisfies Readonly<Record<string, readonly [number, string, string]>>;

/** Returns a page without content of the run. */
function problemPage(c: Context, problem: keyof typeof problems, status?: ContentfulStatusCode): Promise<Response> {
  const [usual, title, text] = problems[problem];
  if (problem === "working") c.header("retry-after", "60");
  return page(c, {
    status: status ?? usual,
    title,
    body: html`
      <h1>${title}</h1>
      <p>${text}</p>
    `,
  });
}

/** Returns the page that confirms an answer. */
function donePage(c: Context, { decision }: Link, others: number): Promise<Response> {
  const title = decision === "approve" ? "Approved" : "Denied";
  const rest = others === 0 ? "The run continues." : `Questions of this run that are still open: ${others}.`;
  return page(c, {
    status: 200,
    title,
    body: html`
      <h1>${title}</h1>
      <p>${rest}</p>
    `,
  });
}

/** The content of the page of a question. */
interface ShownQuestion {
  readonly agent: string;
  readonly link: Link;
  readonly question: Question;
}

/** Returns the page that shows a question and asks for the click that decides. Characters that would hide a part of it are escaped. */
function questionPage(c: Context, { agent, link, question }: ShownQuestion): Promise<Response> {
  const { decision, expires } = link;
  const { path = [], tool = "", input, questions } = question;
  const isDenial = decision === "deny";
  const verb = isDenial ? "Deny" : "Approve";
  const shown = visible(JSON.stringify(input, null, 2) ?? "", "\n");
  const reason = isDenial &&
    html`<label>Reason, which the agent reads (optional)<textarea name="reason" maxlength="1000" rows="3"></textarea></label>`;
  const body = html`
    <h1>${verb} this call?</h1>
    ${questions.map((text) => html`<p class="question">${visible(text, "\n")}</p>`)}
    <dl>
      <dt>Tool</dt>
      <dd><code>${visible(tool)}</code></dd>
      <dt>Asked by</dt>
      <dd>${visible([agent, ...path].join(" → "))}</dd>
      <dt>Input</dt>
      <dd>
        <pre>${shown}</pre>
      </dd>
      <dt>Link expires</dt>
      <dd>${new Date(expires).toISOString().replace(/T(.....).*/, " $1 UTC")}</dd>
    </dl>
    <form method="post">${reason}<button class="${decision}">${verb}</button></form>
  `;
  return page(c, { status: 200, title: `${verb} a call`, body });
}

/** A page: its status, its title, which previews of chats show, and its content. */
interface Page {
  readonly status: ContentfulStatusCode;
  readonly title: string;
  readonly body: ReturnType<typeof html>;
}

/** Returns a page. It loads nothing, runs no script, cannot be framed, and is not cached, indexed or named to other sites. */
async function page(c: Context, { status, title, body }: Page): Promise<Response> {
  const nonce = crypto.randomUUID();
  const document = html`
    <!doctype html>
    <html lang="en">
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="robots" content="noindex">
      <title>${title}</title>
      <link rel="icon" href="data:,">
      <style nonce="${nonce}">${style}</style>
      <main>${body}</main>
    </html>
  `;
  return await c.html(document, status, {
    "cache-control": "no-store",
    "content-security-policy": `default-src 'none'; style-src 'nonce-${nonce}'; img-src data:; form-action 'self'; ` +
      "base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow, noarchive, nosnippet",
  });
}

/** The style of the pages, in both colour schemes. It contains no character that HTML escapes. */
const style = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; }
main { box-sizing: border-box; max-width: 40rem; margin: 0 auto; padding: 1.5rem 1rem; }
h1 { font-size: 1.4rem; }
dt { margin-top: 0.75rem; font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; }
pre { margin: 0; padding: 0.75rem; white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid GrayText; border-radius: 6px; }
.question { white-space: pre-wrap; overflow-wrap: anywhere; }
label, textarea { display: block; box-sizing: border-box; width: 100%; font: inherit; }
button { width: 100%; margin-top: 1.25rem; padding: 0.75rem; font: inherit; font-weight: 600; color: #fff; background: #1a6b34; border: 0; border-radius: 6px; }
button.deny { background: #a3231f; }
`;
