/**
 * Attacks on stored sessions and records: rows that are cut, or in which a random value is replaced.
 *
 * @module
 */
import { agent, memory, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable, type Journal } from "@jizai/jizai/session/durable";
import { journalKey, runIdOf } from "../../src/core/journal.ts";
import { waiting } from "../support/halting.ts";
import { processOf } from "../support/process.ts";
import { first, framesOf, piecesOf, post } from "../support/requests.ts";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

/** Cuts a JSON text, or replaces one of its values. */
function damaged(text: string, { below, one }: Chance): string {
  if (below(3) === 0) return text.slice(0, below(text.length));
  const values = text.match(/(?<=[:[,])("[^"]*"(?!:)|-?\d+|\{\}|\[\])/g) ?? [];
  let left = below(values.length);
  const value = one(["null", "-1", '""', '"x"', "[]", "{}", "[null]", "true", "1e308", '{"$entry":7}']);
  return text.replace(/(?<=[:[,])("[^"]*"(?!:)|-?\d+|\{\}|\[\])/g, (found) => left-- === 0 ? value : found);
}

/** Returns a journal in which an event of one run is damaged. `shown` receives its line. */
function damagedJournal(
  journal: Journal,
  isBad: (run: string) => boolean,
  { below }: Chance,
  shown: (line: string) => void,
): Journal {
  return {
    ...journal,
    async read(key, run, after) {
      const page = await journal.read(key, run, after);
      if (!page || !isBad(runIdOf({ key, run })) || page.lines.length === 0) return page;
      const at = below(page.lines.length);
      const line = (page.lines[at] ?? "").slice(0, below(page.lines[at]?.length ?? 0));
      shown(line);
      return { ...page, lines: page.lines.with(at, line) };
    },
  };
}

/** Damages a line of the record of a run. Fails if a client reads it, or if another run is not readable. */
async function damageRecord(chance: Chance): Promise<void> {
  let [bad, line] = ["", ""];
  const journal = damagedJournal(memory().journal, (run) => run === bad, chance, (found) => line = found);
  const make = () =>
    serve(agent({ model: scripted("One two three.", "Done.") }), {
      store: durable(journal),
      onError() {},
    });
  const app = make();
  const runs: string[] = [];
  for (let count = 0; count < 2; count++) {
    const response = await post(app, "/runs", { prompt: "Hi" });
    runs.push(first("run.started", framesOf(await response.text())).run);
  }
  const [good = ""] = runs.splice(chance.below(2), 1);
  bad = runs[0] ?? "";
  const [path = "", method] = chance.one<readonly string[]>([["", "GET"], ["/stop", "POST"], ["/messages", "POST"]]);
  const send = (run: string) =>
    method === "GET"
      ? app.request(`/runs/${run}`)
      : post(app, `/runs/${run}${path}`, path === "/stop" ? {} : { text: "Hi" });
  const response = await send(bad);
  const text = await response.text();
  const what = () => `${method} ${path} with the line ${line} was answered with ${response.status} ${text}`;
  expect(response.status === 500 ? text.includes('"unreadable"') : line === "" || method === "POST", what);
  const other = await app.request(`/runs/${good}`);
  expect(other.status === 200 && (await other.text()).includes("run.finished"), () => `run ${good} is not readable`);
}

/** Damages a record, and the row of one of three lost runs. Fails if the others do not continue, or if a request to it is not answered. */
export const rows: Attack = {
  name: "rows",
  async attempt(chance) {
    await damageRecord(chance);
    const kept = durable(memory().journal);
    const sessions: string[] = [];
    for (let count = 0; count < 3; count++) {
      const { app, kill } = processOf({ store: kept }, agent({ model: waiting("Half") }));
      const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
      sessions.push(first("run.started", framesOf(await pieces.until("Half"))).session);
      kill();
    }
    const [bad = "", ...good] = sessions;
    const { journal } = kept;
    const key = journalKey(undefined, bad);
    const head = damaged((await journal.head(key))?.head ?? "", chance);
    const spoil = <S extends { readonly head: string }>(of: string, stored: S | undefined) =>
      stored && (of === key && stored.head.includes('"run"') ? { ...stored, head } : stored);
    const store = durable({
      ...journal,
      head: async (of) => spoil(of, await journal.head(of)),
      open: async (of) => spoil(of, await journal.open(of)),
    });
    const app = serve(agent({ model: scripted(...Array.from({ length: 9 }, () => "Done.")) }), {
      store,
      singleProcess: true,
      onError() {},
    });
    const shown = () => `damage: ${head.slice(0, 2_000)}`;
    await (await app.recover()).over;
    for (const id of good) {
      const messages = (await kept.load(id))?.messages.length;
      expect(messages === 2, () => `session ${id} has ${messages} messages beside a damaged one, ${shown()}`);
    }
    const response = await app.request(`/sessions/${bad}`);
    expect([200, 500].includes(response.status), () => `it was answered with ${response.status}, ${shown()}`);
    await response.body?.cancel();
    return 2;
  },
};
