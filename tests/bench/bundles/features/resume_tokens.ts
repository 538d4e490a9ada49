/** A served agent whose paused runs are kept by the client, in signed tokens. */
import { agent, serve } from "@jizai/jizai";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { options } from "../assistant.ts";

const keys = [{ id: "1", secret: "a secret of at least thirty-two characters" }];

export default serve(agent(options), { resumeTokens: resumeTokens({ keys }) });
