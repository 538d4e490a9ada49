/**
 * A program whose spans Deno exports: a run in the trace of its caller, which pauses, and continues in the trace of an answer.
 *
 * @module
 */
import { agent, ask, tool } from "@jizai/jizai";
import { otel } from "@jizai/jizai/middleware/otel";
import { scripted } from "@jizai/jizai/model/scripted";
import * as api from "@opentelemetry/api";
import * as z from "zod";

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen." });
const assistant = agent({
  model: scripted({ calls: [["look", {}]] }, "Done."),
  tools: [look],
  use: [otel(api), { name: "asking", approval: () => Promise.resolve(ask("Sure?")) }],
});

const traceparent = (digit: string) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`;
const { session } = await assistant.run({ prompt: "Hi", traceparent: traceparent("a") }).result;
const answers = [{ callId: "call_1", type: "approve" }] as const;
const { text } = await assistant.resume({ session, answers, traceparent: traceparent("b") }).result;
console.log(text);
