/** A served agent with a moderation guard. */
import { agent, serve } from "@jizai/jizai";
import { moderation, openaiModerator } from "@jizai/jizai/middleware/moderation";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, use: [moderation({ moderator: openaiModerator({ apiKey: "" }) })] }));
