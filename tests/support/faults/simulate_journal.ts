/**
 * Conversations over a journal with faults. Processes die at every place and race for one session, and appends fail or lose their acknowledgement. Others post mail
 * and stops, and clients follow the events.
 *
 * @module
 */
import "../simulation.ts"; // first, because it replaces the clocks that other modules read when they are loaded
import { assert, assertEquals } from "@std/assert";
import { type Message, textOf } from "@jizai/jizai";
import { historyOf, transcriptOf } from "../../../src/core/entries.ts";
import {
  type Append,
  type Journal,
  journalKey,
  type MailEntry,
  type NumberedJournalEntry,
  runIdOf,
} from "../../../src/core/journal.ts";
import { type OpenedSession, openSession } from "../../../src/core/session_version.ts";
import type { Unsaved } from "../../../src/core/session.ts";
import { claimSession } from "../claims.ts";
import type { Chance } from "../seeded.ts";
import { simulate, sleep } from "../simulation.ts";
import { begin, JournalRun, resumed, rolledBackReason, type RunPlan } from "./journal_run.ts";
import type { Trace } from "./process.ts";
import type { Figures } from "./simulate_conversation.ts";
import type { Place } from "./storage.ts";

/** Milliseconds after which a run is lost: long, so that a claim that shuts itself out is noticed. */
const lease = 30_000;

/** The most messages that wait. */
const most = 3;

/** Everything that outlives a process. */
interface World {
  readonly chance: Chance;
  readonly journal: () => Journal;
  readonly key: string;
  readonly plan: RunPlan;
  readonly prompts: number;
  readonly log: Trace;
  /** In a million places, how often a process dies, an append fails, and an acknowledgement is lost. */
  readonly rates: { readonly dies: number; readonly fails: number; readonly loses: number };
  readonly effects: Map<string, number>;
  /** The events that clients have read, by run and number. */
  readonly seen: Map<string, string>;
  /** The holders of the appends that were stored, in their order. */
  readonly holders: string[];
  /** The runs to which messages were posted, by their ids. */
  readonly posted: Map<string, number>;
  readonly figures: Record<
    "deaths" | "failures" | "lost acknowledgements" | "claims" | "appends" | "fenced" | "posts" | "stops" | "pauses",
    number
  >;
  /** Set once all prompts are answered. */
  isOver: boolean;
}

function journalOf(place: Place): Journal {
  return place.open().store.journal;
}

/** A session that is not to be claimed now. */
class Refused extends Error {}

/** Simulates the conversation of `seed`. Throws if it breaks an invariant. `log` receives a line for each event. */
export async function simulateJournal(seed: number, open: () => Place, log: Trace = () => {}): Promise<Figures> {
  return await simulate(seed, async (chance) => {
    const place = open();
    const { below, one } = chance;
    const turn = () => Array.from({ length: 1 + below(3) }, () => one(["read", "write", "ask"] as const));
    const scale = one([0, 1, 3, 8]) * 5_000;
    const world: World = {
      chance,
      journal: () => journalOf(place),
      key: journalKey(undefined, `session ${seed}`),
      plan: { turns: Array.from({ length: below(4) }, turn), compactAt: one([4, 8, 99]) },
      prompts: 1 + below(3),
      log,
      rates: { dies: scale, fails: 2 * scale, loses: 3 * scale },
      effects: new Map(),
      seen: new Map(),
      holders: [],
      posted: new Map(),
      figures: {
        deaths: 0,
        failures: 0,
        "lost acknowledgements": 0,
        claims: 0,
        appends: 0,
        fenced: 0,
        posts: 0,
        stops: 0,
        pauses: 0,
      },
      isOver: false,
    };
    const main = Promise.all(Array.from({ length: 1 + below(2) }, () => converse(world))).finally(() =>
      world.isOver = true
    );
    await Promise.all([main, follow(world), follow(world), post(world)]);
    await check(world);
    return world.figures;
  });
}

// Processes.

/** A process: it dies at a place, and then hangs for ever. */
class DyingProcess {
  readonly #world: World;
  readonly journal: Journal;
  /** The holders of its appends. */
  readonly holders = new Set<string>();
  readonly died = Promise.withResolvers<"died">();
  isDead = false;

  constructor(world: World) {
    this.#world = world;
    const journal = world.journal();
    const around = async <T>(work: () => Promise<T>): Promise<T> => {
      await this.place();
      const done = await work();
      await this.place();
      return done;
    };
    this.journal = {
      ...journal,
      open: (key) => around(() => journal.open(key)),
      entries: (...range) => around(() => journal.entries(...range)),
      append: (key, append) => around(() => this.#append(journal, key, append)),
    };
  }

  async #append(journal: Journal, key: string, append: Append) {
    const { chance, rates, figures, holders } = this.#world;
    const { to } = append;
    this.holders.add(to.holder);
    if (chance.below(1e6) < rates.fails) {
      figures.failures++;
      throw new Error("It was not stored");
    }
    const done = await journal.append(key, append);
    if (!done) figures.fenced++;
    if (done?.stored && holders.at(-1) !== `${to.holder} ${to.n}`) {
      holders.push(`${to.holder} ${to.n}`);
      figures.appends++;
    }
    if (chance.below(1e6) < rates.loses) {
      figures["lost acknowledgements"]++;
      throw new Error("It was stored, perhaps");
    }
    return done;
  }

  /** Passes a place at which the process may wait or die. */
  async place(): Promise<void> {
    const { chance: { below }, rates, figures } = this.#world;
    if (below(4) === 0) await sleep(below(400) === 0 ? below(2 * lease) : below(20));
    if (!this.isDead && below(1e6) < rates.dies) {
      this.isDead = true;
      figures.deaths++;
      this.died.resolve("died");
    }
    if (this.isDead) await new Promise(() => {});
  }
}

/** Begins runs, answers pauses and continues lost runs until all prompts are answered. */
async function converse(world: World): Promise<void> {
  const { chance: { below }, log, prompts } = world;
  for (let attempt = 0; attempt < 2_000; attempt++) {
    await sleep(below(50));
    const head = await world.journal().head(world.key);
    if (head?.state === "over" && head.run >= prompts) return;
    if (head?.state === "running" && (head.due ?? Infinity) > 0 && below(20) > 0) {
      await sleep(Math.min(Math.max(head.due ?? 0, 1), below(4) === 0 ? lease : 500));
      continue;
    }
    const process = new DyingProcess(world);
    const working = work(world, process).catch((error) =>
      error instanceof Refused ? `refused: ${error.message}` : `failed: ${error}`
    );
    const outcome = await Promise.race([working, process.died.promise]);
    log(`${outcome}`);
    if (typeof outcome === "string" && outcome.startsWith("failed: ") && !/It was/.test(outcome)) {
      throw new Error(outcome);
    }
    if (below(2) === 0) process.isDead ||= outcome === "died";
  }
  throw new Error("The conversation does not end");
}

/** Claims the session, and works for its run. */
async function work(world: World, process: DyingProcess): Promise<string> {
  const { chance, key, plan, effects, figures } = world;
  const early: MailEntry[] = [];
  let receive = (entry: MailEntry): void => void early.push(entry);
  let claimed: Unsaved | undefined;
  const options = { journal: process.journal, key, lease, onMail: (entry: MailEntry) => receive(entry) };
  const writer = await claimSession(options, (opened, number) => {
    if (opened && process.holders.has(opened.head.mark.holder)) throw new Error("A claim has shut itself out");
    const claim = decide(world, opened, number);
    claimed = claim.session;
    return claim;
  });
  figures.claims++;
  const place = () => process.place();
  const effect = (name: string) => void effects.set(name, (effects.get(name) ?? 0) + 1);
  const run = new JournalRun({ chance, plan, place, effect }, writer, claimed!);
  receive = (entry) => run.receive(entry);
  for (const entry of early) run.receive(entry);
  return await run.work() ? `run ${writer.run} is over` : "lost";
}

/** Decides about a claim, as a server does. */
function decide(
  { chance: { below }, key, prompts, figures }: World,
  opened: OpenedSession | undefined,
  number: number,
) {
  const { state = "over", run = 0, due = null } = opened?.head ?? {};
  const lives = state === "running" && (due ?? Infinity) > 0;
  const replaces = lives && run < prompts && below(8) === 0;
  if (lives && !replaces) throw new Refused("busy");
  if (!opened || state === "over" || replaces || (state === "paused" && run < prompts && below(6) === 0)) {
    if (run >= prompts) throw new Refused("all prompts are answered");
    const keep = opened && state === "over" && below(5) === 0 ? cutIn(opened.session.messages, below) : undefined;
    return { session: begin(opened, runIdOf({ key, run: number }), `prompt ${number}`, keep), begins: true };
  }
  const asked = opened.session.run?.exit?.questions ?? [];
  const isLost = state === "running";
  if (!isLost) figures.pauses++;
  const answers = asked.slice(0, 1 + below(asked.length)).flatMap(({ callId }) => callId === undefined ? [] : [callId]);
  return { session: resumed(opened, answers, isLost), begins: false };
}

/** Returns a number of messages to keep that leaves a valid transcript. */
function cutIn(messages: readonly Message[], below: Chance["below"]): number {
  const users = messages.flatMap(({ role }, index) => role === "user" ? [index] : []);
  return users[below(Math.max(users.length, 1))] ?? 0;
}

/** Another process, which posts messages and stops. */
async function post(world: World): Promise<void> {
  const { chance: { below, one }, key, posted, figures } = world;
  for (let left = below(5); left > 0 && !world.isOver;) {
    await sleep(below(300));
    const journal = world.journal();
    const { run = 0, state } = await journal.head(key) ?? {};
    if (state !== "running") continue;
    const isStop = below(6) === 0;
    const id = `mail ${left}`;
    const mail = isStop
      ? { type: "stop", reason: "user", rollback: one([true, false]) } as const
      : { type: "message", message: { role: "user", parts: [{ type: "text", text: id }] } } as const;
    const added = { run, entry: { type: "mail", id, mail }, ...(!isStop && { most }) } as const;
    const outcome = await journal.post(key, added);
    if (below(3) === 0) await journal.post(key, added); // its acknowledgement was lost
    if (outcome.status !== "posted") continue;
    left--;
    if (isStop) figures.stops++;
    else {
      figures.posts++;
      posted.set(id, run);
    }
  }
}

// Clients.

/** A client: it reads the events of every run, a page now and then. It has read nothing that the journal does not have. */
async function follow(world: World): Promise<void> {
  const { chance: { below, one }, key } = world;
  const at = new Map<number, number>();
  let woken = Promise.withResolvers<void>();
  const leave = world.journal().watch(key, { notify: () => woken.resolve(), fail() {} });
  while (!world.isOver) {
    await Promise.race([woken.promise, sleep(one([30, 300, 3_000]))]);
    woken = Promise.withResolvers();
    const journal = world.journal();
    const { run = 0 } = await journal.head(key) ?? {};
    for (let each = 1; each <= run; each++) {
      const after = at.get(each) ?? 0;
      const page = await journal.read(key, each, after);
      if (!page) continue; // a run that was replaced before its first event
      assertEquals(page.first, after + 1, "Events are missing");
      see(world, each, page.first, page.lines);
      at.set(each, after + page.lines.length);
      if (page.lines.length > 0 && below(6) === 0) await checkShown(world, each, page.lines);
      if (page.over && below(4) === 0) await journal.pack?.(key, each);
    }
  }
  leave();
}

function see({ seen, log }: World, run: number, first: number, lines: readonly string[]): void {
  for (const [index, line] of lines.entries()) {
    const name = `${run} ${first + index}`;
    if (!seen.has(name)) log(`event ${name}: ${line.slice(0, 120)}`);
    assertEquals(line, seen.get(name) ?? line, `Event ${name} was read as another one`);
    seen.set(name, line);
  }
}

/** Checks that the journal has the results and texts of a run that clients have read, unless the run has taken them back. */
async function checkShown({ journal, key }: World, run: number, lines: readonly string[]): Promise<void> {
  const { head = "", last = 0 } = await journal().head(key) ?? {};
  const entries = await journal().entries(key, 1, last);
  if (isRolledBack(entries, run)) return;
  const stored = head + JSON.stringify(entries);
  for (const line of lines) {
    const { type, text } = JSON.parse(line);
    if (type === "tool.finished" || (type === "model.finished" && text !== "")) {
      assert(stored.includes(text), `A client has read ${line}, which is not stored`);
    }
  }
}

function isRolledBack(entries: readonly NumberedJournalEntry[], run: number): boolean {
  return entries.some(([, entry]) => entry.type === "ended" && entry.run === run && entry.reason === rolledBackReason);
}

// The invariants of the whole journal.

async function check(world: World): Promise<void> {
  const { key, effects, seen, holders, posted } = world;
  const journal = world.journal();
  const opened = await openSession(journal, key);
  assert(opened?.head.state === "over", "A run is left");
  assertEquals(opened.session.run, undefined);
  for (const [name, count] of effects) assert(count === 1 || !name.startsWith("write"), `${name} had ${count} effects`);
  const blocks = holders.map((each) => each.split(" ")[0]).filter((holder, index, all) => holder !== all[index - 1]);
  assertEquals(new Set(blocks).size, blocks.length, "A process has written that had lost the session");
  const all = await journal.entries(key, 1, opened.head.last);
  assertEquals(all.map(([number]) => number), all.map((_, index) => index + 1));
  assertEquals(
    transcriptOf(all).messages,
    opened.session.messages,
    "The base lacks something",
  );
  for (let end = 1; end <= all.length; end++) {
    checkValid(transcriptOf(all.slice(0, end)).messages);
  }
  checkValid(opened.session.messages);
  for (let run = 1; run <= opened.head.run; run++) await checkEvents(world, run, all);
  checkMail(all, posted);
  checkStops(all);
  assertEquals(opened.head.due, null);
  assertEquals([...seen.keys()].filter((name) => Number(name.split(" ")[0]) > opened.head.run), []);
}

/** Checks that each call of a transcript has one result. Prefixes end within a change. */
function checkValid(messages: readonly Message[]): void {
  for (const [index, message] of messages.entries()) {
    const before = messages[index - 1];
    const asked = before?.role === "assistant"
      ? before.parts.flatMap((part) => part.type === "call" ? [part.id] : [])
      : [];
    const given = message.role === "tool" ? message.results.map(({ callId }) => callId) : [];
    assertEquals(given, asked, "A call and its result do not match");
  }
}

async function checkEvents(world: World, run: number, all: readonly NumberedJournalEntry[]): Promise<void> {
  const { key, seen } = world;
  const journal = world.journal();
  const lines: string[] = [];
  for (let last = Infinity; lines.length < last;) {
    const page = await journal.read(key, run, lines.length);
    if (!page) break; // a run that was replaced before its first event
    assertEquals(page.first, lines.length + 1, "Events are missing");
    lines.push(...page.lines);
    last = page.last;
  }
  see(world, run, 1, lines);
  assertEquals(
    [...seen.keys()].filter((name) => name.startsWith(`${run} `)).length,
    lines.length,
    "A client has read more than there is",
  );
  await checkShown(world, run, lines);
  const events = lines.map((line) => JSON.parse(line));
  const ends = events.filter(({ type }) => type === "run.finished" || type === "run.paused")
    .map(({ status = "paused", reason }) => [status, reason]);
  const entries = all.flatMap(([, entry]) =>
    entry.type === "ended" && entry.run === run ? [[entry.as, entry.reason]] : []
  );
  assertEquals(entries, ends, "The journal has other ends than clients have read");
  let text = "";
  for (const { type, text: more } of events) {
    if (type === "text.delta") text += more;
    if (type === "model.reset") text = "";
    if (type !== "model.finished") continue;
    assertEquals(text, more, "Clients have read a text that is in no response");
    text = "";
  }
}

/** Checks that each message that was accepted was delivered once, or was taken back. */
function checkMail(all: readonly NumberedJournalEntry[], posted: ReadonlyMap<string, number>): void {
  const changes = JSON.stringify(all.filter(([, { type }]) => type === "back" || type === "base"));
  const history = historyOf(all).map(([, message]) => message.role === "tool" ? "" : textOf(message));
  for (const [id, run] of posted) {
    const count = history.filter((text) => text === id).length;
    assert(
      count === 1 || (count === 0 && (changes !== "[]" || isRolledBack(all, run))),
      `${id} was delivered ${count} times`,
    );
  }
}

/** Checks that a run which has received a stop neither pauses nor ends in another way. */
function checkStops(all: readonly NumberedJournalEntry[]): void {
  let isStopped = false;
  let run = 0;
  for (const [, entry] of all) {
    if (entry.type === "begun" && entry.run !== run) [run, isStopped] = [entry.run, false];
    if (entry.type === "mail" && entry.mail.type === "stop") isStopped = true;
    if (entry.type === "ended" && isStopped) assertEquals(entry.as, "cancelled");
  }
}
