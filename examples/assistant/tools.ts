/**
 * The tools of the assistant: search the documentation, read a passage, calculate.
 *
 * @module
 */
import { type AnyTool, tool, ToolError } from "@jizai/jizai";
import * as z from "zod";
import { evaluate } from "./calculator.ts";
import type { Library } from "./search.ts";

const excerptLength = 120;

/** The result of `search_docs`: the best hit first. */
export const hits = z.array(z.object({ id: z.string(), title: z.string(), score: z.number(), excerpt: z.string() }));

/** Creates the tools that find and read the passages of `library`. */
export function docsTools(library: Library): readonly AnyTool[] {
  const searchDocs = tool({
    name: "search_docs",
    description: "Searches the documentation of this project and lists the passages that fit best, by id",
    input: z.object({
      query: z.string().max(200).describe("a few words"),
      place: z.enum(["guide", "code"]).optional().describe("only the README, or only the docblocks in the code"),
    }),
    execute: ({ query, place }): z.infer<typeof hits> =>
      library.search(query, { place }).map(({ passage: { id, title, text }, score }) => ({
        id,
        title,
        score: Number(score.toFixed(2)),
        excerpt: text.replace(/\s+/g, " ").slice(0, excerptLength),
      })),
  });

  const readDoc = tool({
    name: "read_doc",
    description: "Reads one passage of the documentation",
    input: z.object({ id: z.string().describe("as search_docs lists it") }),
    execute({ id }) {
      const passage = library.read(id);
      if (!passage) {
        throw new ToolError(`Cannot read passage "${id}": it does not exist; expected an id that search_docs lists`);
      }
      return passage.text;
    },
  });

  return [searchDocs, readDoc];
}

/** The input of `calculate`. */
export const sum = z.object({ expression: z.string().max(200) });

/** Calculates an expression. */
export const calculate = tool({
  name: "calculate",
  description: "Calculates with numbers, + - * / % ^ and parentheses",
  input: sum,
  execute({ expression }) {
    try {
      return String(evaluate(expression));
    } catch (cause) {
      if (cause instanceof SyntaxError || cause instanceof RangeError) throw new ToolError(cause.message, { cause });
      throw cause;
    }
  },
});
