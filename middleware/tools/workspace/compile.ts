/**
 * Compiling: what a pattern says becomes states, and which of them one comes to from which.
 *
 * @module
 */
import { ToolError } from "../../../mod.ts";

/** A place in a pattern. */
export type State =
  | { readonly type: "character"; readonly fits: (character: string) => boolean; readonly next: State }
  | { readonly type: "between"; readonly fits: (before: string, after: string) => boolean; readonly next: State }
  | { readonly type: "fork"; readonly next: State[] }
  | { readonly type: "end" };

/** A part of a pattern: where it begins, given what comes after it. */
type Part = (next: State) => State;

const longest = 1_000;
const mostStates = 2_000;

/** Where a pattern begins. Throws a `ToolError` where it is none that can be compiled, or too large. */
export function compile(source: string): State {
  if (source.length > longest) throw new ToolError(`Cannot search: a pattern has ${longest} characters at most.`);
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
