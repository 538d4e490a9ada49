/**
 * A Worker that serves an agent to MCP clients, and whose other agent is such a client. Each of its requests has agents of its own.
 *
 * @module
 */
import { agent, memory, serve, tool } from "@jizai/jizai";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { scripted } from "@jizai/jizai/model/scripted";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { mcpWire } from "@jizai/jizai/wire/mcp";
import * as z from "zod";

/** Every Worker of these tests has a Durable Object. */
export class Nothing {}

const pay = tool({
  name: "pay",
  description: "Pays",
  input: z.object({ amount: z.number() }),
  ask: true,
  execute: ({ amount }) => `Paid ${amount}.`,
});

/** Serves the agent. What waits is with the client, so another process can continue it. */
const shop = () =>
  serve(agent({ model: scripted(), tools: [pay] }), {
    wires: [mcpWire({ tools: ["pay"] })],
    resumeTokens: resumeTokens({ keys: [{ id: "k1", secret: "at least 32 bytes of your own choice" }] }),
  });

/** Pays on the server at `url`, which asks first. Returns the questions, and the results after their approval. */
async function buy(url: string): Promise<object> {
  const session = { session: "s1", store: memory() };
  const buyer = () => {
    const model = scripted(({ messages }) => {
      return messages.length > 1 ? "Done." : { calls: [["mcp__shop__pay", { amount: 7 }]] };
    });
    return agent({ model, use: [mcp({ servers: { shop: { url } } })] });
  };
  const { questions } = await buyer().run({ prompt: "Pay", ...session }).result;
  const answers = questions.map(({ callId }) => ({ callId, type: "approve" } as const));
  const { messages } = await buyer().resume({ ...session, answers }).result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  return { asked: questions.map(({ questions }) => questions), results: results.map(({ parts }) => parts) };
}

export default {
  /** Serves `/mcp`, and pays on the server that any other request names. */
  async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname === "/mcp") return await shop().fetch(request);
    return Response.json(await buy(await request.text()));
  },
};
