/**
 * The cost of a request whose answer is one line.
 *
 * @module
 */
import { agent, type ModelEvent, serve } from "@jizai/jizai";
import { Hono } from "hono/tiny";
import { body, drain, floor, replay } from "../kit/floor.ts";
import { type Load, recorded, type Run } from "../kit/load.ts";
import type { Measure } from "../kit/measure.ts";
import { medians } from "../kit/stopwatch.ts";

const requests = 100;

const events: readonly ModelEvent[] = [{ type: "text", text: "Hello!" }, { type: "finish", reason: "stop" }];
const model = {
  id: "line",
  async *stream() {
    yield events;
  },
};

/** Sends requests to a served agent. */
export function postLoad(): Load {
  const run = requesting(serve(agent({ model })));
  return { what: "a POST of one line", run, count: requests, unit: "request" };
}

/** Sends `POST /runs` to a served agent, and to a Hono app that streams the same bytes. */
export async function postMeasures(): Promise<readonly Measure[]> {
  const events = await recorded(model);
  const bare = new Hono().post("/runs", async (c) => {
    await c.req.json();
    return c.body(floor(replay(events)), 200, { "content-type": "text/event-stream" });
  });
  const time = await medians({ bare: requesting(bare), served: postLoad().run }, {
    rounds: 60,
    warmUp: 20,
  });
  return [
    { what: "a POST of one line, of Hono's", figure: time.served / time.bare, atMost: 2.5, unit: "x" },
    { what: "... alone", figure: time.served / requests, unit: "µs" },
  ];
}

function requesting(app: Pick<Hono, "request">): Run {
  const headers = { "content-type": "application/json" };
  return async () => {
    for (let request = 0; request < requests; request++) {
      const response = await app.request("/runs", { method: "POST", headers, body });
      await drain(response.body);
    }
  };
}
