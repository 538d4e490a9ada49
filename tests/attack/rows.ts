/**
 * Attacks on stored sessions: rows that are cut, or in which a random value is replaced.
 *
 * @module
 */
import { agent, memory, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { memoryLog } from "@jizai/jizai/session/log";
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

/** Damages the row of one of three lost runs. Fails if the others do not continue, or if a request to it is not answered. */
export const rows: Attack = {
  name: "rows",
  async attempt(chance) {
    const kept = durable(memory());
    const sessions: string[] = [];
    for (let count = 0; count < 3; count++) {
      const { app, kill } = processOf({ store: kept, log: memoryLog() }, agent({ model: waiting("Half") }));
      const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
      sessions.push(first("run.started", framesOf(await pieces.until("Half"))).session);
      kill();
    }
    const [bad = "", ...good] = sessions;
    const head = damaged((await kept.head(bad))?.head ?? "", chance);
    const spoil = <S extends { readonly head: string }>(id: string, stored: S | undefined) =>
      stored && (id === bad && stored.head.includes('"run"') ? { ...stored, head } : stored);
    const store = durable({
      ...kept,
      head: async (id) => spoil(id, await kept.head(id)),
      open: async (id) => spoil(id, await kept.open(id)),
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
