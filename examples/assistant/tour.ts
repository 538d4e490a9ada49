/**
 * The tour: prompts that each show one strength of a stack of hooks, and the middleware that one can turn off to see what happens without it.
 *
 * @module
 */
import type { ProposedPrompt, Switch } from "@jizai/jizai/playground";

/** The prompts, each with what to look for. */
export const prompts: readonly ProposedPrompt[] = [
  {
    text: "How many lanterns, kettles, hooks and bowls do you have?",
    note: "Four lookups of one response run at the same time. In the trace, their bars lie below one another.",
    by: "parallel calls",
  },
  {
    text: "Refund order 1042",
    note: "A person decides. Change the amount before you approve: exactly the input that you see runs.",
    by: "permissions",
  },
  {
    text: "Which card paid order 1042?",
    note: "The card number is masked while the answer streams, in the result of the tool, and in what is stored.",
    by: "redact",
  },
  {
    text: "Delete the customer Ada",
    note: "A rule denies the call. The model reads the reason, and no person is asked.",
    by: "permissions",
  },
  {
    text: "What does a parcel to Oslo cost?",
    note:
      "The carrier fails at first. The call is tried again with the same idempotency key, and the model never sees the error.",
    by: "retry",
  },
  {
    text: "Compare the price of every item with every other",
    note:
      "The budget of 14 calls is spent before the work is done. The model gives one last answer, and the run ends as limit.",
    by: "budget",
  },
  {
    text: "Find a gift for someone who loves tea",
    note:
      "A subagent works with its own model and tools. Its brackets lie inside the call, and your permissions hold there too.",
    by: "asTool",
  },
  {
    text: "Take stock of all shelves",
    note:
      "It takes half a minute. Reload the page, or stop the server and start it again: the run continues where it was.",
    by: "store and recover",
  },
];

/** The middleware that the page can turn off. */
export const switches: readonly Switch[] = [
  { name: "redact", note: "Without it, the card number is in the answer, in the trace and in what is stored." },
  { name: "permissions", note: "Without it, a refund is paid and a customer deleted, without a question." },
  { name: "retry", note: "Without it, the model reads that the carrier failed." },
  { name: "budget", note: "Without it, all 21 pairs are compared." },
];
