/**
 * What begins a run, and what it goes on with.
 *
 * @module
 */
import type { Context } from "hono";
import { SessionError } from "../core/claim.ts";
import { theirs } from "../session/record/host.ts";
import { answersBody, bodyOf, compactBody, runBody } from "./body.ts";
import { turnsOf } from "./busy.ts";
import { callerOf } from "./caller.ts";
import { onceOf } from "./keys.ts";
import { unknown } from "./refusal.ts";
import { type Served, streamRun } from "./served.ts";
import { wrong } from "./shape.ts";

/** Answers a request with the events of a run. */
export type Handler = (c: Context) => Promise<Response>;

/** Begins runs, goes on with those that wait for a person, and compacts sessions. */
export function beginning(served: Served): { readonly [how in "begin" | "answer" | "compact"]: Handler } {
  const { how, runs, runs: { records } } = served;
  const once = onceOf(served);
  const turn = turnsOf(runs, how);

  return {
    async begin(c) {
      const caller = await callerOf(c, how);
      const body = await bodyOf(c, runBody, how.maxBody);
      const addressed = how.session?.(c);
      const named = addressed ?? body.session;
      if (body.session !== undefined && body.session !== named) throw unknown(`run session "${body.session}"`);
      const place = { run: crypto.randomUUID(), session: named ?? crypto.randomUUID(), after: 0 };
      return await once(c, caller, { place, body: [named, body] }, (given = place) => {
        const { run, session } = given;
        async function begin(busy?: "replace"): Promise<Response> {
          const kept = named === undefined ? undefined : await runs.load(named, caller);
          if (!kept && addressed === undefined && named !== undefined) throw unknown(`run session "${named}"`);
          if (kept) await records?.free(kept, caller);
          const held = await how.capsules?.hold();
          return await streamRun(c, served, caller, { ...body, run, session, held, ...(busy && { busy }) });
        }
        return turn({ place: given, caller, begin });
      });
    },

    async answer(c) {
      const caller = await callerOf(c, how);
      const { answers, capsule } = await bodyOf(c, answersBody, how.maxBody);
      const session = c.req.param("id") ?? "";
      if (how.capsules && capsule === undefined) throw wrong("capsule", "what came with the pause");
      const held = await how.capsules?.hold(capsule, { session });
      const kept = held ? theirs(held.session, caller) : await runs.load(session, caller);
      if (!kept) throw unknown(`resume session "${session}"`);
      const { id: run = crypto.randomUUID(), status, events: after = 0 } = kept.run ?? {};
      const place = status === "paused" ? { run, session, after } : undefined;
      const key = held && `capsule:${run}:${after}`; // it can be used once, where there is a record
      return await once(c, caller, { place, key, body: [answers, capsule] }, async () => {
        const last = await records?.catchUp(kept, caller) ?? after;
        if (held && last > after) {
          throw new SessionError(`Cannot resume session "${session}": it is not paused`, "not-paused");
        }
        return await streamRun(c, served, caller, { run, session, answers, held, after: last });
      });
    },

    async compact(c) {
      const caller = await callerOf(c, how);
      const { instructions = "" } = await bodyOf(c, compactBody, how.maxBody);
      const session = c.req.param("id") ?? "";
      const kept = await runs.load(session, caller);
      if (!kept) throw unknown(`compact session "${session}"`);
      await records?.free(kept, caller);
      return await streamRun(c, served, caller, { run: crypto.randomUUID(), session, compact: { instructions } });
    },
  };
}
