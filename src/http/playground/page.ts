/**
 * The script of the page.
 *
 * @module
 */
import type { PersonAnswer } from "../../protocol/question.ts";
import type { ConnectionHost, connectionOf } from "./connection.ts";
import type { drawConversation } from "./conversation_view.ts";
import type { Document, Element } from "./dom.ts";
import type { elementsOf } from "./elements.ts";
import type { entryUpdates } from "./entries.ts";
import type { drawQuestion } from "./question_view.ts";
import type { readFrames } from "./read_frames.ts";
import type { drawRun } from "./run_view.ts";
import type { spanUpdates } from "./spans.ts";
import type { View } from "./view.ts";
import type { viewReducer } from "./view_reducer.ts";

declare const document: Document;
declare function requestAnimationFrame(draw: () => void): void;

/** The functions of the page. */
export interface Parts {
  readonly connectionOf: typeof connectionOf;
  readonly drawConversation: typeof drawConversation;
  readonly drawQuestion: typeof drawQuestion;
  readonly drawRun: typeof drawRun;
  readonly elementsOf: typeof elementsOf;
  readonly entryUpdates: typeof entryUpdates;
  readonly readFrames: typeof readFrames;
  readonly spanUpdates: typeof spanUpdates;
  readonly viewReducer: typeof viewReducer;
}

/** Runs in the page, so it uses nothing outside itself but the globals of a page. */
export function page(parts: Parts): void {
  const base = location.pathname.replace(/\/$/, "");
  const storageKey = `jizai ${base}`;
  const emptyView: View = { at: 0, status: "idle", entries: [], spans: [], questions: [], began: 0, waited: 0 };
  const elements = parts.elementsOf(document);
  const reduce = parts.viewReducer(parts.spanUpdates(), parts.entryUpdates());
  const [log, onion, asked, state, words, stop, finish, composer, fresh] = [
    "log",
    "onion",
    "asked",
    "state",
    "words",
    "stop",
    "finish",
    "composer",
    "new",
  ].map(found) as [Element, Element, Element, Element, Element, Element, Element, Element, Element]; // one for each id
  let view: View = { ...emptyView, ...JSON.parse(sessionStorage.getItem(storageKey) ?? "{}") };
  let connectionState = "";
  let leaving = new AbortController();
  let isDrawDue = false;

  const host: ConnectionHost = {
    get signal() {
      return leaving.signal;
    },
    get view() {
      return view;
    },
    receive(frame) {
      view = reduce(view, frame, now());
      if (!isDrawDue) requestAnimationFrame(draw);
      isDrawDue = true;
    },
    setStatus: (status) => show({ ...view, status }),
    setConnection(text) {
      connectionState = text;
      if (text) draw();
    },
    fail,
  };
  const server = parts.connectionOf(base, host, parts.readFrames);

  listen();
  show(view);
  if (view.run !== undefined && (isRunning() || view.status === "lost")) server.follow();
  else if (isRunning()) fail("It is not known whether the server received this message.");

  function listen(): void {
    composer.addEventListener("submit", (event) => {
      event.preventDefault();
      submit();
    });
    words.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      submit();
    });
    stop.addEventListener("click", stopRun);
    finish.addEventListener("click", () => send(`/runs/${view.run}/finish`));
    fresh.addEventListener("click", () => {
      leaving.abort();
      leaving = new AbortController();
      show(emptyView);
      words.focus();
    });
    addEventListener("pagehide", store);
    setInterval(() => isRunning() && draw(), 250);
  }

  function found(id: string): Element {
    const element = document.getElementById(id);
    if (!element) throw new Error(`Cannot draw the page: it has no element "${id}"`);
    return element;
  }

  function now(): number {
    return performance.timeOrigin + performance.now();
  }

  function isRunning(): boolean {
    return view.status === "running" || view.status === "starting";
  }

  /** Begins a run, or sends the text to the one that is running. */
  function submit(): void {
    const text = words.value.trim();
    if (!text) return;
    words.value = "";
    if (view.status === "running") return void steer(text);
    const { session, entries } = view;
    const known = session === undefined ? {} : { session };
    show({ ...emptyView, ...known, entries, status: "starting", began: now() });
    server.follow(server.post("/runs", { ...known, prompt: text }));
  }

  /** Sends a message to the run. It is shown as waiting until it is delivered, and returns to the text field if it is refused. */
  async function steer(text: string): Promise<void> {
    const waiting = addNote(`Waits to be sent: ${text}`, "waits");
    if (await send(`/runs/${view.run}/messages`, { text })) return;
    show({ ...view, entries: view.entries.filter(({ key }) => key !== waiting) });
    words.value ||= text;
  }

  function answer(answer: PersonAnswer): void {
    const { session = "", resumeToken } = view;
    show({ ...view, status: "starting" });
    server.follow(server.post(`/sessions/${encodeURIComponent(session)}/answers`, { answers: [answer], resumeToken }));
  }

  /** Stops the run. A paused run has no open stream, so its end is requested. */
  async function stopRun(): Promise<void> {
    const isPaused = view.status === "paused";
    if (await send(`/runs/${view.run}/stop`) && isPaused) server.follow();
  }

  /** Sends a request and shows why it was refused, if it was. Returns whether it was accepted. */
  async function send(path: string, body?: unknown): Promise<boolean> {
    const refusal = await server.send(path, body);
    if (refusal !== undefined) addNote(refusal);
    return refusal === undefined;
  }

  /** Shows an error. A run with open questions is still paused; the state of every other run is unknown. */
  function fail(text: string): void {
    connectionState = "";
    view = { ...view, status: view.questions.length > 0 ? "paused" : "lost" };
    addNote(text);
  }

  /** Adds a note and returns its key. */
  function addNote(text: string, kind = "page"): string {
    const key = `${kind} ${now()}`;
    show({ ...view, entries: [...view.entries, { key, who: "note", text }] });
    return key;
  }

  function show(next: View): void {
    view = next;
    draw();
  }

  function draw(): void {
    isDrawDue = false;
    const { status, entries, spans, questions, began, waited, pausedSince = now(), run = "" } = view;
    keepAtEnd(log, () => parts.drawConversation(elements, log, entries));
    keepAtEnd(onion, () => parts.drawRun(elements, onion, spans, pausedSince - began - waited));
    const open = (status === "paused" ? questions : []).map((question, index) => ({
      key: `${run} ${view.at} ${index}`,
      question,
    }));
    elements.list(asked, open, ({ question }) => parts.drawQuestion(elements, question, answer), () => {});
    elements.write(state, connectionState || status);
    stop.disabled = status !== "running" && status !== "paused";
    finish.disabled = status !== "running";
  }

  /** Draws a list. If the list was scrolled to its end, it is afterwards, too. */
  function keepAtEnd(root: Element, draw: () => void): void {
    const isAtEnd = root.scrollHeight - root.scrollTop - root.clientHeight < 40;
    draw();
    if (isAtEnd) root.scrollTop = root.scrollHeight;
  }

  /** Stores the view for a reload. If it is too large, only the fields that name the run are stored. */
  function store(): void {
    const { run, session, status, began } = view;
    try {
      sessionStorage.setItem(storageKey, JSON.stringify(view));
    } catch {
      sessionStorage.setItem(storageKey, JSON.stringify({ ...emptyView, run, session, status, began }));
    }
  }
}
