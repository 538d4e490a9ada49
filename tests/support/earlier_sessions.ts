/**
 * Sessions that version 0.1.0 of the package has stored, as its process left them when it was killed: recorded, with shorter ids and texts.
 *
 * @module
 */

/** A session as version 0.1.0 stores it. */
export interface EarlierSession {
  readonly id: string;
  readonly version: number;
  /** The end of its lease, in milliseconds since 1970. */
  readonly lease: number | null;
  /** The session as JSON, without its version. */
  readonly text: string;
}

/** A session as versions after 0.1.0 and before journals store it: a head, and entries. */
export interface EarlierEntries {
  readonly id: string;
  readonly holder: string;
  readonly n: number;
  readonly base: number;
  readonly last: number;
  readonly until: number;
  readonly head: string;
  /** The entries of each save, one a line, by the number of the first of them. */
  readonly entries: readonly (readonly [first: number, lines: string])[];
}

const schema = {
  "oneOf": [{
    "type": "object",
    "properties": {
      "type": { "const": "approve" },
      "input": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "amount": { "type": "number" } },
        "required": ["amount"],
      },
      "always": { "enum": ["tool", "input"] },
    },
    "required": ["type"],
  }, {
    "type": "object",
    "properties": { "type": { "const": "deny" }, "reason": { "type": "string" } },
    "required": ["type"],
  }, {
    "type": "object",
    "properties": { "type": { "const": "reply" }, "text": { "type": "string" } },
    "required": ["type", "text"],
  }],
};

/** Returns a question of the tool `pay`. */
function asked(callId: string, amount: number) {
  const suggestions = [{ type: "approve" }, { type: "approve", always: "tool" }, { type: "deny" }];
  return { callId, tool: "pay", input: { amount }, questions: ["Run pay?"], schema, suggestions };
}

function stored(
  version: number,
  lease: number | null,
  session: Readonly<Record<string, unknown>> & { readonly id: string },
): EarlierSession {
  return { id: session.id, version, lease, text: JSON.stringify(session) };
}

/** The session with the transcript from before the compaction. */
export const archive: EarlierSession = stored(1, null, {
  "messages": [
    { "role": "user", "parts": [{ "type": "text", "text": "Plan a trip" }] },
    {
      "role": "assistant",
      "parts": [{ "type": "text", "text": "See the temples. See the temples. See the temples. " }],
    },
    { "role": "user", "parts": [{ "type": "text", "text": "And food?" }] },
    { "role": "assistant", "parts": [{ "type": "text", "text": "Try the tofu. Try the tofu. Try the tofu. " }] },
    { "role": "user", "parts": [{ "type": "text", "text": "Cost?" }] },
  ],
  "id": "archive",
});

/** The same after the first answer, which a person gave for all such inputs. */
export const answered: EarlierSession = stored(8, null, {
  "messages": [{ "role": "user", "parts": [{ "type": "text", "text": "Pay twice" }] }],
  "id": "answered",
  "run": {
    "id": "run_answered",
    "startedAt": 1700000456869,
    "counters": { "turns": 1, "calls": 3, "continuations": 0, "batches": 2, "outputs": 0 },
    "usage": { "input": 1, "output": 1 },
    "state": [["counting.run", 1]],
    "answers": [{
      "question": asked("call_1", 5),
      "answer": { "type": "approve", "callId": "call_1", "always": "input" },
    }],
    "before": 0,
    "events": 31,
    "position": {
      "at": "tools",
      "turn": 1,
      "message": {
        "role": "assistant",
        "parts": [{ "type": "call", "id": "call_1", "name": "pay", "input": { "amount": 5 } }, {
          "type": "call",
          "id": "call_2",
          "name": "look",
          "input": { "at": "y" },
        }, { "type": "call", "id": "call_3", "name": "pay", "input": { "amount": 7 } }],
      },
      "calls": [{
        "call": { "id": "call_1", "name": "pay", "input": { "amount": 5 } },
        "state": "done",
        "result": {
          "callId": "call_1",
          "name": "pay",
          "status": "ok",
          "parts": [{ "type": "text", "text": "Paid 5" }],
        },
      }, {
        "call": { "id": "call_2", "name": "look", "input": { "at": "y" } },
        "state": "done",
        "result": {
          "callId": "call_2",
          "name": "look",
          "status": "ok",
          "parts": [{ "type": "text", "text": "Saw y" }],
        },
      }, {
        "call": { "id": "call_3", "name": "pay", "input": { "amount": 7 } },
        "state": "waiting",
        "questions": [asked("call_3", 7)],
      }],
    },
    "exit": { "status": "paused", "questions": [asked("call_3", 7)] },
  },
  "state": [["counting.session", 1]],
  "rules": [{ "tool": "pay", "input": { "amount": 5 } }],
});

/** A session that was compacted. It names the session with the transcript from before. */
export const archived: EarlierSession = stored(11, null, {
  "messages": [
    { "role": "user", "parts": [{ "type": "text", "text": "Plan a trip" }] },
    {
      "role": "user",
      "parts": [{ "type": "text", "text": "This is a summary of what came before, in its place:\n\nKyoto, tofu." }],
      "from": "compaction",
    },
    { "role": "user", "parts": [{ "type": "text", "text": "Cost?" }] },
    { "role": "assistant", "parts": [{ "type": "text", "text": "About 900 euros." }] },
  ],
  "id": "archived",
  "archive": "archive",
  "state": [["counting.session", 3]],
  "last": {
    "run": "run_archived",
    "event": {
      "type": "run.finished",
      "status": "done",
      "text": "About 900 euros.",
      "usage": { "input": 2, "output": 2 },
    },
    "before": 2,
  },
});

/** A session with two runs that have ended. */
export const finished: EarlierSession = stored(9, null, {
  "messages": [
    { "role": "user", "parts": [{ "type": "text", "text": "Hi" }] },
    { "role": "assistant", "parts": [{ "type": "text", "text": "Hello." }] },
    { "role": "user", "parts": [{ "type": "text", "text": "Look" }] },
    { "role": "assistant", "parts": [{ "type": "call", "id": "call_1", "name": "look", "input": { "at": "x" } }] },
    {
      "role": "tool",
      "results": [{
        "callId": "call_1",
        "name": "look",
        "status": "ok",
        "parts": [{ "type": "text", "text": "Saw x" }],
      }],
    },
    { "role": "assistant", "parts": [{ "type": "text", "text": "Seen x." }] },
  ],
  "id": "finished",
  "state": [["counting.session", 3]],
  "last": {
    "run": "run_finished",
    "event": { "type": "run.finished", "status": "done", "text": "Seen x.", "usage": { "input": 2, "output": 2 } },
    "before": 2,
  },
});

/** A session whose process died in the middle of a batch: one call has a result, one was running, and a message has arrived. */
export const lost: EarlierSession = stored(6, 1700000459780, {
  "messages": [{ "role": "user", "parts": [{ "type": "text", "text": "Hang" }] }],
  "id": "lost",
  "run": {
    "id": "run_lost",
    "startedAt": 1700000457066,
    "position": {
      "at": "tools",
      "turn": 1,
      "message": {
        "role": "assistant",
        "parts": [{ "type": "call", "id": "call_1", "name": "look", "input": { "at": "z" } }, {
          "type": "call",
          "id": "call_2",
          "name": "hang",
          "input": {},
        }],
      },
      "calls": [{
        "call": { "id": "call_1", "name": "look", "input": { "at": "z" } },
        "name": "look",
        "input": { "at": "z" },
        "state": "ran",
        "raw": {
          "type": "result",
          "status": "ok",
          "parts": [{ "type": "text", "text": "Saw z" }],
          "input": { "at": "z" },
        },
      }, { "call": { "id": "call_2", "name": "hang", "input": {} }, "name": "hang", "input": {}, "state": "running" }],
    },
    "counters": { "turns": 1, "calls": 2, "continuations": 0, "batches": 1, "outputs": 0 },
    "usage": { "input": 1, "output": 1 },
    "state": [["counting.run", 1]],
    "answers": [],
    "before": 0,
    "events": 14,
  },
  "state": [["counting.session", 1]],
  "lease": { "until": 1700000459114 },
  "mail": [{ "type": "message", "message": { "role": "user", "parts": [{ "type": "text", "text": "By the way" }] } }],
});

/** A session whose run waits for the answers to two questions. */
export const paused: EarlierSession = stored(5, null, {
  "messages": [{ "role": "user", "parts": [{ "type": "text", "text": "Pay twice" }] }],
  "id": "paused",
  "run": {
    "id": "run_paused",
    "startedAt": 1700000456809,
    "position": {
      "at": "tools",
      "turn": 1,
      "message": {
        "role": "assistant",
        "parts": [{ "type": "call", "id": "call_1", "name": "pay", "input": { "amount": 5 } }, {
          "type": "call",
          "id": "call_2",
          "name": "look",
          "input": { "at": "y" },
        }, { "type": "call", "id": "call_3", "name": "pay", "input": { "amount": 7 } }],
      },
      "calls": [{
        "call": { "id": "call_1", "name": "pay", "input": { "amount": 5 } },
        "state": "waiting",
        "questions": [asked("call_1", 5)],
      }, {
        "call": { "id": "call_2", "name": "look", "input": { "at": "y" } },
        "state": "done",
        "result": {
          "callId": "call_2",
          "name": "look",
          "status": "ok",
          "parts": [{ "type": "text", "text": "Saw y" }],
        },
      }, {
        "call": { "id": "call_3", "name": "pay", "input": { "amount": 7 } },
        "state": "waiting",
        "questions": [asked("call_3", 7)],
      }],
    },
    "counters": { "turns": 1, "calls": 3, "continuations": 0, "batches": 1, "outputs": 0 },
    "usage": { "input": 1, "output": 1 },
    "state": [["counting.run", 1]],
    "answers": [],
    "before": 0,
    "events": 21,
    "exit": { "status": "paused", "questions": [asked("call_1", 5), asked("call_3", 7)] },
  },
  "state": [["counting.session", 1]],
});

/** Returns entries of messages, one a line. */
function messageLines(...messages: readonly unknown[]): string {
  return messages.map((message) => `${JSON.stringify({ type: "message", message })}\n`).join("");
}

const lostSession = JSON.parse(lost.text);
const summary = {
  "role": "user",
  "parts": [{ "type": "text", "text": "This is a summary of what came before, in its place:\n\nKyoto, tofu." }],
  "from": "compaction",
};
const plan = { "role": "user", "parts": [{ "type": "text", "text": "Plan a trip" }] };
const messagesBefore = [
  plan,
  { "role": "assistant", "parts": [{ "type": "text", "text": "See the temples." }] },
  { "role": "user", "parts": [{ "type": "text", "text": "And food?" }] },
  { "role": "assistant", "parts": [{ "type": "text", "text": "Try the tofu." }] },
];
const entriesHead = {
  "id": "entries",
  "compactions": 1,
  "run": { ...lostSession.run, "id": "run_entries", "before": 2 },
  "rules": [{ "tool": "pay", "input": { "amount": 5 } }],
  "mail": lostSession.mail,
};

/** A session of that kind: it was compacted, its run was lost as that of `lost`, and a value of its state is an entry of its own. */
export const withEntries: EarlierEntries = {
  id: "entries",
  holder: "5a169a9c-5569-405b-8145-1bba4eea3f04",
  n: 4,
  base: 5,
  last: 9,
  until: 1700000459780,
  head: JSON.stringify({
    "format": 1,
    ...entriesHead,
    "state": [["counting.session", 1], ["notes", { "$entry": 9 }]],
    "lease": { "until": 1700000459114 },
    "writer": { "holder": "5a169a9c-5569-405b-8145-1bba4eea3f04", "n": 4 },
  }),
  entries: [
    [1, messageLines(...messagesBefore.slice(0, 2))],
    [3, messageLines(...messagesBefore.slice(2))],
    [5, `{"type":"base","count":2,"same":1,"kept":0}\n${messageLines(plan, summary)}`],
    [8, `${messageLines(lostSession.messages[0])}{"type":"value","value":"${"n".repeat(1_200)}"}\n`],
  ],
};

/** The same as it is read, and its history. */
export const readWithEntries = {
  session: {
    ...entriesHead,
    version: 4,
    messages: [plan, summary, lostSession.messages[0]],
    state: [["counting.session", 1], ["notes", "n".repeat(1_200)]],
    lease: { until: 0 },
  },
  history: [...messagesBefore, summary, lostSession.messages[0]],
};

/** The entry that remembers to report the end of the lost run. */
export const report: EarlierSession = stored(1, 1700000465066, {
  "messages": [],
  "id": '􏿿["","run_lost"]',
  "report": { "run": "run_lost", "session": "lost", "at": 1700000457066 },
  "lease": { "until": 1700000465066 },
});
