/** A served agent with metrics. */
import { agent, serve } from "@jizai/jizai";
import { type Meters, serverMetrics } from "@jizai/jizai/middleware/server_metrics";
import { options } from "../assistant.ts";

/** Serves the agent, with the meters of the module `@opentelemetry/api`. */
export function served(api: Meters) {
  const metrics = serverMetrics(api);
  const app = serve(agent(options), { observe: metrics.observe });
  metrics.watch(app);
  return app;
}
