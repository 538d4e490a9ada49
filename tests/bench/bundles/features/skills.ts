/** A served agent with skills. */
import { agent, serve } from "@jizai/jizai";
import { skills } from "@jizai/jizai/middleware/skills";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [skills([{ url: "https://example.com" }])] }));
