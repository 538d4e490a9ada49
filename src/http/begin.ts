/**
 * What begins a run, and what it goes on with.
 *
 * @module
 */
import type { Context } from "hono";
import { SessionError } from "../core/claim.ts";
import { type Given, theirs } from "../session/record/host.ts";
import { invalid } from "../protocol/shape.ts";
import { type AnswersBody, bodyOf, compactBody, type RunBody } from "./body.ts";
import { turnsOf } from "./busy.ts";
import { type Caller, callerOf } from "./caller.ts";
import type { Form } from "./form.ts";
import { onceOf } from "./keys.ts";
import { unknown } from "./refusal.ts";
import { type Served, streamRun } from "./served.ts";

/** A prompt, whoever reads it. */
export type Prompted = RunBody & Pick<Given, "tools"> & {
  /** Whether its session is made where there is none. Default: false. */
  readonly anew?: boolean;
};

/** Answers to what a session asks, whoever reads them. */
export type Answering = AnswersBody & Pick<Given, "session" | "tools">;

/** Answers a request of `caller` with what becomes of `said`, told in a form. Default: natively. */
export type Handler<T> = (c: Context, caller: Caller, said: T, form?: Form) => Promise<Response>;

/** Begins runs, goes on with those that wait for a person, and compacts sessions. */
export interface Beginning {
  readonly begin: Handler<Prompted>;
  readonly answer: Handler<Answering>;
  readonly compact: (c: Context) => Promise<Response>;
}

/** Says how runs begin on this server. */
export function beginning(served: Served): Beginning {
  const { how, runs, runs: { records } } = served;
  const once = onceOf(served);
  const turn = turnsOf(runs, how);

  return {
    async begin(c, caller, { anew, ...body }, form) {
      const addressed = how.session?.(c);
      const named = addressed ?? body.session;
      if (body.session !== undefined && body.session !== named) throw unknown(`run session "${body.session}"`);
      const place = { run: crypto.randomUUID(), session: named ?? crypto.randomUUID(), after: 0 };
      return await once(c, caller, { place, body: [named, body], form }, (given = place) => {
        const { run, session } = given;
        async function begin(busy?: "replace"): Promise<Response> {
          const kept = named === undefined ? undefined : await runs.load(named, caller);
          if (!kept && !anew && addressed === undefined && named !== undefined) throw unknown(`run session "${named}"`);
          if (kept) await records?.free(kept, caller);
          const held = await how.resumeTokens?.hold();
          return await streamRun(c, served, caller, { ...body, run, session, held, ...(busy && { busy }) }, form);
        }
        return turn({ place: given, caller, begin });
      });
    },

    async answer(c, caller, { session, answers, resumeToken, run: asking, at = Infinity, tools }, form) {
      if (how.resumeTokens && resumeToken === undefined) throw invalid("resumeToken", "what came with the pause");
      const held = await how.resumeTokens?.hold(resumeToken, { session });
      const kept = held ? theirs(held.session, caller) : await runs.load(session, caller);
      if (!kept) throw unknown(`resume session "${session}"`);
      const { id: run = crypto.randomUUID(), status, events: after = 0 } = kept.run ?? {};
      const isLate = (asking ?? run) !== run || (status === "paused" && at < after);
      const place = status === "paused" && !isLate ? { run, session, after } : undefined;
      const key = held && `resumeToken:${run}:${after}`; // it can be used once, where there is a record
      return await once(
        c,
        caller,
        { place, key, body: [answers, resumeToken, asking, at], form },
        async (_, request) => {
          const last = await records?.catchUp(kept, caller) ?? after;
          if ((held && last > after) || isLate) {
            throw new SessionError(`Cannot resume session "${session}": it is not paused`, "not-paused");
          }
          const asked = { request, at: place ? after : at };
          return await streamRun(
            c,
            served,
            caller,
            { ...asked, run, session, answers, held, after: last, tools },
            form,
          );
        },
      );
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
