/** A prompt at times, in a process that lives. */
import { agent, serve } from "@jizai/jizai";
import { schedule } from "@jizai/jizai/schedule";
import { options } from "../assistant.ts";

const app = serve(agent(options));
schedule(app, [{ name: "report", cron: "0 7 * * *", prompt: "Report." }]).start();

export default app;
