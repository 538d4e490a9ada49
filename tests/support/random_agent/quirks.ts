/**
 * Quirks: middleware that a seed chooses. Each is deterministic, so that two runs can be compared.
 *
 * @module
 */
import {
  allow,
  ask,
  cancelled,
  compacted,
  continueWith,
  denied,
  deny,
  isInterrupt,
  mapText,
  type Middleware,
  reply,
  skipped,
  state,
  text,
  type ToolChange,
  tryAgain,
  user,
} from "@jizai/jizai";
import type { Chance } from "../seeded.ts";
import { asks, asksBeforeEnd, asksBeforePrompt, lingers } from "./pauses.ts";
import type { Vars } from "./person.ts";

/** Creates the middleware of a quirk. */
export type Quirk = () => Middleware<Vars>;

/** Chooses a quirk. */
type Kind = (chance: Chance, name: string) => Quirk;

/** Returns the number in the input of a call. */
function numberOf(input: unknown): number {
  return typeof input === "object" && input !== null && "n" in input && typeof input.n === "number" ? input.n : 0;
}

const guards: Kind = ({ below, one }, name) => {
  const of = 2 + below(3);
  const verdict = one([deny("Too much."), ask("Is that so?"), ask("Really?"), allow({ input: { n: of * 10 + 1 } })]);
  return () => ({
    name,
    approval: async (ctx, next) => numberOf(ctx.input) % of === 0 && ctx.name !== "helper" ? verdict : await next(),
  });
};

const changes: Kind = ({ below, one }, name) => {
  const of = 2 + below(3);
  const change = one<ToolChange>([{ input: { n: 7 } }, { input: { n: "seven" } }, { name: "pay" }, {
    name: "missing",
  }]);
  return () => ({
    name,
    tool: (ctx, next) => numberOf(ctx.input) % of === 1 ? next(change) : next(),
  });
};

const answers: Kind = ({ below, one }, name) => {
  const of = 2 + below(3);
  const answer = one([text("I know that."), denied("Not that."), skipped("Later.")]);
  return () => ({
    name,
    tool: async (ctx, next) => ctx.name === "read" && numberOf(ctx.input) % of === 0 ? answer : await next(),
  });
};

const reviews: Kind = ({ one }, name) => {
  const context = one([[], [`${name} has seen it.`]]);
  return () => ({
    name,
    async tool(_, next) {
      const result = mapText(await next(), (text) => `${text} (${name})`);
      return { ...result, context: [...result.context ?? [], ...context] };
    },
  });
};

/** Counts the calls, and adds the count to the answer. It is the outermost, so that it sees each call once. */
export function counts(): Middleware<Vars> {
  const calls = state("counts.calls", () => 0);
  return {
    name: "counts",
    async tool(ctx, next) {
      const result = await next();
      calls.update(ctx, (n) => n + 1);
      return result;
    },
    async prompt(ctx, next) {
      const answer = await next();
      return { ...answer, text: `${answer.text} After ${calls.get(ctx)} calls.` };
    },
  };
}

const insists: Kind = ({ below }, name) => {
  const times = 1 + below(2);
  const messages = below(4) === 0 ? [] : ["Go on, please."];
  return () => ({
    name,
    async stop(ctx, next) {
      const verdict = await next();
      return verdict.type === "finish" && ctx.continuations < times ? continueWith(...messages) : verdict;
    },
  });
};

const briefs: Kind = ({ one }, name) => {
  const prompt = one([undefined, user("Something else.")]);
  return () => ({
    name,
    session: (_, next) => next({ context: ["You are at home."] }),
    prompt: (_, next) => next({ context: ["It is late."], ...(prompt && { prompt }) }),
    turn: (ctx, next) => next({ context: [...ctx.context, "Be brief."] }),
  });
};

const speaks: Kind = ({ below }, name) => {
  const turn = 1 + below(3);
  return () => ({
    name,
    model: async (ctx, next) => ctx.turn === turn ? reply(`${name} says so.`) : await next(),
  });
};

const retries: Kind = (_, name) => () => ({
  name,
  async execute(_, next) {
    try {
      return await next();
    } catch (error) {
      if (isInterrupt(error)) throw error;
      return await next();
    }
  },
});

const forgives: Kind = (_, name) => () => ({
  name,
  error: async (ctx, next) => ctx.recoverable && ctx.attempt === 1 ? tryAgain() : await next(),
});

const ends: Kind = ({ below, one }, name) => {
  const turn = 1 + below(4);
  const options = { as: one(["done", "limit", "failed", "cancelled"] as const), rollback: one([true, false, false]) };
  return () => ({
    name,
    async turn(ctx, next) {
      const result = await next();
      if (ctx.index === turn) throw ctx.run.end("enough", options);
      return result;
    },
  });
};

const refuses: Kind = ({ below }, name) => {
  const late = below(2) === 0;
  return () => ({
    name,
    async prompt(_, next) {
      if (late) await next();
      return cancelled("Not now.");
    },
  });
};

const shortens: Kind = (_, name) => () => ({
  name,
  compact: async ({ transcript }, next) =>
    transcript.length > 6 ? compacted([user("Much was said.", name), ...transcript.slice(-2)]) : await next(),
});

const tame: readonly Kind[] = [
  ...[asks, asks, asks, asks, asksBeforePrompt, asksBeforeEnd],
  ...[guards, guards, changes, answers, reviews, insists, briefs, speaks, retries, forgives],
];

/** The quirks that end the run, or remove messages from the transcript. */
const wild: readonly Kind[] = [ends, shortens, refuses];

/** Chooses quirks. If `tamely` is true, none of them ends the run or removes messages. */
export function quirksBy(chance: Chance, tamely: boolean): readonly Quirk[] {
  const kinds = tamely ? tame : [...tame, ...wild];
  const quirks = Array.from({ length: chance.below(7) }, (_, index) => {
    const kind = kinds[chance.below(kinds.length)] ?? asks;
    return kind(chance, `${kind.name}${index}`);
  });
  return quirks.toSpliced(chance.below(quirks.length + 1), 0, lingers);
}
