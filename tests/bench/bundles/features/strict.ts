/** A served agent whose hooks receive frozen values. */
import { agent, serve } from "@jizai/jizai";
import { options } from "../assistant.ts";
import { strict } from "@jizai/jizai/strict";

export default serve(agent({ ...options, strict }));
