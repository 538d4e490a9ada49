/** Uses as much of Zod as an agent with one tool does, and imports nothing else. */
import * as z from "zod";
import * as core from "zod/v4/core";

const input = z.object({ city: z.string() });

export const schema = input["~standard"].jsonSchema.input({ target: "draft-2020-12" });
export const coreSchema = core.toJSONSchema(input, { io: "input" });
export const parse = (text: string) => input.parse(JSON.parse(text));
