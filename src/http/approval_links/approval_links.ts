/**
 * Approval links: each approves or denies one question of a paused run, for people who have no page of the application open.
 *
 * @module
 */
import type { Hono } from "hono";
import type { Server } from "../operation.ts";
import type { RunEnd } from "../options.ts";
import { emittedForm, type Question } from "../../protocol/question.ts";
import { expectNames } from "../../protocol/shape.ts";
import { encryption, type SecretKey } from "../../session/resume_token/encryption.ts";
import { formOf, type Link, type Pause } from "./answering.ts";
import { pagesOf } from "./pages.ts";

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

// The questions that have links.

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
