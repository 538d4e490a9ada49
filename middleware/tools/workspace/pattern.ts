/**
 * Patterns: regular expressions that take time in proportion to the text, whatever they are. All ways through a pattern are gone side by side, one
 * character after another (Thompson 1968); an engine that goes one of them to its end and comes back for the next may never be done.
 *
 * @module
 */
import { compile, type State } from "./compile.ts";

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

/** How many steps are remembered. */
const mostSteps = 20_000;

/**
 * Whether a line has a match of `source`, written as in JavaScript with the flag `u`; it cannot look around, refer back, or name its groups.
 * There is no match where the budget is spent. Throws a `ToolError` where it is no such pattern, or too large.
 */
export function pattern(source: string): (line: string, budget: Budget) => boolean {
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
