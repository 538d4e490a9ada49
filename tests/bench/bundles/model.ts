/** The model of every bundle that is measured. */
import type { Model } from "@jizai/jizai";

export const model: Model = {
  id: "model",
  async *stream() {
    yield [{ type: "text", text: "Hello!" }, { type: "finish", reason: "stop" }];
  },
};
