/**
 * What the page does.
 *
 * @module
 */
import type { PersonAnswer } from "../../protocol/question.ts";
import type { drawQuestion } from "./ask.ts";
import type { Document, Element } from "./dom.ts";
import type { elementsOf } from "./elements.ts";
import type { listen } from "./listen.ts";
import type { look } from "./look.ts";
import type { drawOnion } from "./onion.ts";
import type { drawTalk } from "./talk.ts";
import type { Frame, View } from "./view.ts";

declare const document: Document;
declare function requestAnimationFrame(draw: () => void): void;

/** What the page is made of. */
export interface Parts {
  readonly look: typeof look;
  readonly listen: typeof listen;
  readonly elementsOf: typeof elementsOf;
  readonly drawTalk: typeof drawTalk;
  readonly drawOnion: typeof drawOnion;
  readonly drawQuestion: typeof drawQuestion;
}

/** Runs in the page: it reaches for nothing outside of itself but what every page has. */
export function page({ look, listen, elementsOf, drawTalk, drawOnion, drawQuestion }: Parts): void {
  const base = location.pathname.replace(/\/$/, "");
  const kept = `jizai ${base}`;
  const nothing: View = { at: 0, status: "idle", said: [], spans: [], questions: [], began: 0, waited: 0 };
  const elements = elementsOf(document);
  const log = found("log");
  const onion = found("onion");
  const asked = found("asked");
  const state = found("state");
  const words = found("words");
  const stop = found("stop");
  const finish = found("finish");
  let view: View = { ...nothing, ...JSON.parse(sessionStorage.getItem(kept) ?? "{}") };
  let connection = "";
  let leaving = new AbortController();
  let due = false;

  found("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  words.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  stop.addEventListener("click", end);
  finish.addEventListener("click", () => tell(`/runs/${view.run}/finish`));
  found("new").addEventListener("click", () => {
    leaving.abort();
    leaving = new AbortController();
    show(nothing);
    words.focus();
  });
  addEventListener("pagehide", keep);
  setInterval(() => isRunning() && draw(), 250);
  show(view);
  if (view.run !== undefined && (isRunning() || view.status === "lost")) follow();
  else if (isRunning()) fail("It is not known whether the server has heard this.");

  function found(id: string): Element {
    const element = document.getElementById(id);
    if (!element) throw new Error(`Cannot find ${id} in the page`);
    return element;
  }

  function now(): number {
    return performance.timeOrigin + performance.now();
  }

  function isRunning(): boolean {
    return view.status === "running" || view.status === "starting";
  }

  /** Begins a run, or says something to the one that runs. */
  function send(): void {
    const text = words.value.trim();
    if (!text) return;
    words.value = "";
    if (view.status === "running") return void steer(text);
    const { session, said } = view;
    const known = session === undefined ? {} : { session };
    show({ ...nothing, ...known, said, status: "starting", began: now() });
    follow(post("/runs", { ...known, prompt: text }));
  }

  /** Says something to the run: it is seen to wait until it is delivered, and goes back where it is not taken. */
  async function steer(text: string): Promise<void> {
    const waiting = note(`Waits to be said: ${text}`, "waits");
    if (await tell(`/runs/${view.run}/messages`, { text })) return;
    show({ ...view, said: view.said.filter(({ key }) => key !== waiting) });
    words.value ||= text;
  }

  function answer(answer: PersonAnswer): void {
    const { session = "", resumeToken } = view;
    show({ ...view, status: "starting" });
    follow(post(`/sessions/${encodeURIComponent(session)}/answers`, { answers: [answer], resumeToken }));
  }

  /** Stops the run; one that waits for the person is heard again for that. */
  async function end(): Promise<void> {
    const waits = view.status === "paused";
    if (await tell(`/runs/${view.run}/stop`) && waits) follow();
  }

  function post(path: string, body: unknown = {}): Promise<Response> {
    const headers = { "content-type": "application/json" };
    return fetch(base + path, { method: "POST", headers, body: JSON.stringify(body), signal: leaving.signal });
  }

  /** Sends what is answered with nothing; gives whether it was taken. */
  async function tell(path: string, body?: unknown): Promise<boolean> {
    const response = await post(path, body).catch(() => undefined);
    if (!response?.ok) note(await refusalOf(response));
    return response?.ok === true;
  }

  /** Hears a run to its end: what `opening` brings, and what comes after it where that is cut. */
  async function follow(opening?: Promise<Response>): Promise<void> {
    const { signal } = leaving;
    if (!opening) show({ ...view, status: "running" });
    for (let tries = 0; tries < 8 && !signal.aborted; tries++) {
      const headers = { "last-event-id": String(view.at) };
      const response = await (opening ?? fetch(`${base}/runs/${view.run}`, { headers, signal })).catch(() => undefined);
      opening = undefined;
      if (response?.status === 204) return show({ ...view, status: "over" });
      if (response && !response.ok) return fail(await refusalOf(response));
      connection = "";
      const heard = (frame: Frame) => {
        tries = 0;
        if (!signal.aborted) hear(frame);
      };
      if (response) await listen(response, heard).catch(() => undefined); // where it is cut, the rest is asked for
      if (signal.aborted || !isRunning()) return;
      if (view.run === undefined) break;
      connection = "reconnecting";
      draw();
      await new Promise((next) => setTimeout(next, Math.min(5_000, 200 * 2 ** tries)));
    }
    if (!signal.aborted) fail("The server cannot be reached.");
  }

  function hear(frame: Frame): void {
    view = look(view, frame, now());
    if (!due) requestAnimationFrame(draw);
    due = true;
  }

  async function refusalOf(response: Response | undefined): Promise<string> {
    const said = await response?.json().catch(() => undefined);
    return said?.error?.message ?? `The server cannot be reached${response ? `: ${response.status}` : ""}.`;
  }

  /** It is not known how the run goes on, unless it waits for an answer still. */
  function fail(text: string): void {
    connection = "";
    view = { ...view, status: view.questions.length > 0 ? "paused" : "lost" };
    note(text);
  }

  function note(text: string, kind = "page"): string {
    const key = `${kind} ${now()}`;
    show({ ...view, said: [...view.said, { key, who: "note", text }] });
    return key;
  }

  function show(next: View): void {
    view = next;
    draw();
  }

  function draw(): void {
    due = false;
    const { status, said, spans, questions, began, waited, since = now(), run = "" } = view;
    following(log, () => drawTalk(elements, log, said));
    following(onion, () => drawOnion(elements, onion, spans, since - began - waited));
    const open = (status === "paused" ? questions : []).map((question, index) => ({
      key: `${run} ${view.at} ${index}`,
      question,
    }));
    elements.list(asked, open, ({ question }) => drawQuestion(elements, question, answer), () => {});
    elements.write(state, connection || status);
    stop.disabled = status !== "running" && status !== "paused";
    finish.disabled = status !== "running";
  }

  /** Draws; what was scrolled to its end stays there. */
  function following(root: Element, draw: () => void): void {
    const atEnd = root.scrollHeight - root.scrollTop - root.clientHeight < 40;
    draw();
    if (atEnd) root.scrollTop = root.scrollHeight;
  }

  /** Keeps what is shown for when the page comes back. Where that is too much, what names the run is enough. */
  function keep(): void {
    const { run, session, status, began } = view;
    try {
      sessionStorage.setItem(kept, JSON.stringify(view));
    } catch {
      sessionStorage.setItem(kept, JSON.stringify({ ...nothing, run, session, status, began }));
    }
  }
}
