/**
 * Patterns: regular expressions that take time in proportion to the text, whatever they are. All ways through a pattern are gone side by side, one
 * character after another (Thompson 1968); an engine that goes one of them to its end and comes back for the next may never be done.
 *
 * @module
 */
import { ToolError } from "../../src/core/tool.ts";

/** A place in a pattern. */
type State =
  | { readonly type: "character"; readonly fits: (character: string) => boolean; readonly next: State }
  | { readonly type: "between"; readonly fits: (before: string, after: string) => boolean; readonly next: State }
  | { readonly type: "fork"; readonly next: State[] }
  | { readonly type: "end" };

/** A part of a pattern: where it begins, given what comes after it. */
type Part = (next: State) => State;

/** Where one may be after some characters of a line, and where the next one leads; remembered, so that most characters need no more than a look. */
interface Stand {
  readonly states: ReadonlySet<State>;
  readonly steps: Map<string, Stand | "match">;
}

/** What a search may cost. */
export interface Budget {
  /** So many characters, and states of a pattern, may still be looked at. */
  left: number;
}

const longest = 1_000;
const mostStates = 2_000;
const mostSteps = 20_000;

/**
 * Whether a line has a match of `source`, written as in JavaScript with the flag `u`; it cannot look around, refer back, or name its groups.
 * There is no match where the budget is spent. Throws a `ToolError` where it is no such pattern, or too large.
 */
export function pattern(source: string): (line: string, budget: Budget) => boolean {
  if (source.length > longest) throw new ToolError(`Cannot search: a pattern has ${longest} characters at most.`);
  const start = compile(source);
  let stands = new Map<string, Stand>();
  let steps = 0;
  const numbers = new Map<State, number>();
  const numberOf = (state: State) => numbers.get(state) ?? numbers.set(state, numbers.size).size - 1;

  function standOn(states: ReadonlySet<State>): Stand {
    const key = [...states].map(numberOf).sort().join();
    const stand = stands.get(key) ?? { states, steps: new Map() };
    stands.set(key, stand);
    return stand;
  }

  function step(from: Stand, before: string, after: string, budget: Budget): Stand | "match" {
    const reached = reach([start, ...from.states], before, after);
    budget.left -= reached.size;
    let to: Stand | "match" = "match";
    if (![...reached].some(({ type }) => type === "end")) {
      const next = [...reached].flatMap((state) => state.type === "character" && state.fits(after) ? [state.next] : []);
      to = standOn(new Set(next));
    }
    from.steps.set(`${before}\n${after}`, to);
    if (++steps > mostSteps) {
      stands = new Map();
      steps = 0;
    }
    return to;
  }

  return function matches(line, budget) {
    const characters = [...line, ""];
    let stand = standOn(new Set());
    let before = "";
    for (const after of characters) {
      if (--budget.left < 0) return false;
      const to = stand.steps.get(`${before}\n${after}`) ?? step(stand, before, after, budget);
      if (to === "match") return true;
      stand = to;
      before = after;
    }
    return false;
  };
}

/** All states that can be reached from `from` without a character more. */
function reach(from: readonly State[], before: string, after: string): ReadonlySet<State> {
  const reached = new Set<State>();
  const open = [...from];
  for (let state = open.pop(); state; state = open.pop()) {
    if (reached.has(state)) continue;
    reached.add(state);
    if (state.type === "fork") open.push(...state.next);
    else if (state.type === "between" && state.fits(before, after)) open.push(state.next);
  }
  return reached;
}

/** Where a pattern begins. */
function compile(source: string): State {
  try {
    new RegExp(source, "u"); // it is not run, but it knows what is none
  } catch (cause) {
    if (cause instanceof SyntaxError) throw new ToolError(`Cannot search: ${cause.message}.`, { cause });
    throw cause;
  }
  let at = 0;
  let size = 0;

  function grow<T>(what: T): T {
    if (++size > mostStates) throw new ToolError("Cannot search: the pattern is too large.");
    return what;
  }

  function take(token: RegExp): RegExpExecArray | undefined {
    token.lastIndex = at;
    const taken = token.exec(source) ?? undefined;
    at += taken?.[0].length ?? 0;
    return taken;
  }

  function choice(): Part {
    const ways = [sequence()];
    while (take(/\|/y)) ways.push(sequence());
    return (next) => grow({ type: "fork", next: ways.map((way) => way(next)) });
  }

  function sequence(): Part {
    const parts: Part[] = [];
    while (at < source.length && !/[|)]/.test(source[at] ?? "")) parts.push(repeated(atom()));
    return (next) => parts.reduceRight((rest, part) => part(rest), next);
  }

  function repeated(part: Part): Part {
    const taken = take(/(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/y);
    if (!taken) return part;
    const [, sign, least = "", comma, most] = taken;
    const min = sign ? Number(sign === "+") : Number(least);
    const max = sign ? (sign === "?" ? 1 : Infinity) : most ? Number(most) : comma ? Infinity : min;
    return (next) => {
      let rest = next;
      if (max === Infinity) {
        const loop = grow<State & { type: "fork" }>({ type: "fork", next: [] });
        loop.next.push(part(loop), next);
        rest = loop;
      } else {
        for (let n = min; n < max; n++) rest = grow<State>({ type: "fork", next: [part(rest), next] });
      }
      for (let n = 0; n < min; n++) rest = part(grow(rest));
      return rest;
    };
  }

  function atom(): Part {
    if (take(/\((?:\?:)?(?!\?)/y)) {
      const part = choice();
      take(/\)/y);
      return part;
    }
    const [token = ""] = take(
      /\[(?:\\.|[^\]\\])*\]|\\(?:u\{\w+\}|u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u\w{4}|x\w{2}|[pP]\{[^}]*\}|c\w|.)|[^(]/suy,
    ) ?? [];
    if (/^(?:|\\[1-9k])$/.test(token)) {
      throw new ToolError("Cannot search: a pattern cannot look around, refer back, or name its groups.");
    }
    const between = borders[token];
    if (between) return (next) => grow({ type: "between", fits: between, next });
    const fits = fitsOne(token);
    return (next) => grow({ type: "character", fits, next });
  }

  return choice()({ type: "end" });
}

const isWord = (character: string) => /^\w$/.test(character);

const borders: Readonly<Record<string, (before: string, after: string) => boolean>> = {
  "^": (before) => before === "",
  "$": (_, after) => after === "",
  "\\b": (before, after) => isWord(before) !== isWord(after),
  "\\B": (before, after) => isWord(before) === isWord(after),
};

/** Whether a character is one that `token` stands for. */
function fitsOne(token: string): (character: string) => boolean {
  const one = new RegExp(`^${token}$`, "u");
  return (character) => one.test(character);
}
