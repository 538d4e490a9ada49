/**
 * Served agents whose questions are answered by approval links.
 *
 * @module
 */
import { type Agent, type RunEnd, serve, type ServedApp, type ServeOptions } from "@jizai/jizai";
import {
  type ApprovalLinks,
  approvalLinks,
  type ApprovalLinksOptions,
  type LinkedQuestion,
  type QuestionLinks,
} from "@jizai/jizai/approval_links";
import { Hono } from "hono";
import { type App, eventsOf, first, post } from "./requests.ts";

/** The keys of the links. */
export const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];

/** Links with these keys. */
export function linksWith(options: Partial<ApprovalLinksOptions> = {}): ApprovalLinks {
  return approvalLinks({ url: "https://example.com/approvals", keys, ...options });
}

/** A served agent, its pages, and the questions that were reported. */
export interface Linked {
  /** The app with the pages and the routes of the agent. */
  readonly app: App;
  readonly served: ServedApp;
  /** The questions of each end, in the order of the reports. */
  readonly reports: readonly (readonly LinkedQuestion[])[];
  /** Starts a run, and returns its session, and the questions once they were reported. */
  start(): Promise<{ readonly session: string; readonly run: string; readonly questions: readonly LinkedQuestion[] }>;
}

/** Serves an agent with links. */
export function linked(
  assistant: Agent<unknown, unknown>,
  options: ServeOptions = {},
  links: ApprovalLinks = linksWith(),
): Linked {
  const reports: (readonly LinkedQuestion[])[] = [];
  const onEnd = async (end: RunEnd) => void reports.push(await links.questions(end));
  const served = serve(assistant, { ...options, onEnd });
  const app = new Hono().route("/approvals", links.pages(served)).route("/", served);
  return {
    app,
    served,
    reports,
    async start() {
      const events = await eventsOf(post(app, "/runs", { prompt: "Go" }));
      await served.settled();
      return { ...first("run.started", events), questions: reports.at(-1) ?? [] };
    },
  };
}

/** Returns the links of a question. Throws if it has none. */
export function linksOf(question: LinkedQuestion | undefined): QuestionLinks {
  if (!question?.links) throw new Error(`Cannot click: the question has no links: ${JSON.stringify(question)}`);
  return question.links;
}

/** A page: its status, its heading, and its HTML. */
export type Shown = readonly [status: number, heading: string, html: string];

/** Opens a link. */
export async function open(app: App, link: string, method = "GET"): Promise<Shown> {
  return await shown(app.request(new URL(link).pathname, { method }));
}

/** Presses the button of the page of a link. */
export async function press(app: App, link: string, form: Readonly<Record<string, string>> = {}): Promise<Shown> {
  return await shown(app.request(new URL(link).pathname, { method: "POST", body: new URLSearchParams(form) }));
}

/** Presses the button, and returns the status and the heading of the page that follows. */
export async function decide(
  app: App,
  link: string,
  form?: Readonly<Record<string, string>>,
): Promise<readonly [number, string]> {
  const [status, heading] = await press(app, link, form);
  return [status, heading];
}

async function shown(response: Response | Promise<Response>): Promise<Shown> {
  const { status, body } = await response;
  const html = await new Response(body).text();
  return [status, /<h1>(.*?)<\/h1>/.exec(html)?.[1] ?? "", html];
}
