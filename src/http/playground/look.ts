/**
 * The page's state: each event makes another view of the one before.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { Frame, Said, Span, View } from "./view.ts";

/**
 * Adds what was heard at `now`, in milliseconds since 1970. What is in the view already changes nothing. Runs in the page: it reaches for nothing outside
 * of itself.
 */
export function look(view: View, { id, event }: Frame, now: number): View {
  if (id <= view.at) return view;
  return { ...hear(view, event, ""), at: id };

  /** `path` is where the event is from: empty for the run itself, and `call_1/` for the agent that works for that call. */
  function hear(view: View, event: Event, path: string): View {
    const at = (place: string) => path + place;
    switch (event.type) {
      case "run.started": {
        if (path) return view;
        const { since = now, resumeToken: _, ...rest } = view;
        const { run, session } = event;
        const spans = view.spans.map((span) => ({ ...span, of: "" })); // nothing more lies beneath those of before a pause
        return { ...rest, run, session, status: "running", questions: [], waited: view.waited + now - since, spans };
      }
      case "session.opened":
        return begin(view, at("session"), path.replace(/([^/]*)\/$/, "call $1"), "session");
      case "session.closed":
        return end(end(view, at("prompt")), at("session"));
      case "prompt.accepted": {
        const begun = begin(view, at("prompt"), at("session"), "prompt");
        return path ? begun : say(begun, { who: "you", key: "you", text: textOf(event.prompt.parts) });
      }
      case "turn.started": {
        const under = isOpen(view, at("prompt")) ? "prompt" : "session";
        return begin(view, at(`turn ${event.turn}`), at(under), `turn ${event.turn}`);
      }
      case "turn.finished":
        return end(view, at(`turn ${event.turn}`));
      case "model.started": {
        const { turn, model } = event;
        return begin(forget(view, path, turn), at(`model ${turn}`), at(`turn ${turn}`), `model ${model}`);
      }
      case "model.reset":
        return note(forget(view, path, event.turn), at(`model ${event.turn}`), "started over");
      case "model.finished": {
        const { turn, finish, attempts, text } = event;
        const ended = end(view, at(`model ${turn}`), attempts > 1 ? `${finish}, ${attempts} attempts` : finish);
        if (text === undefined) return ended;
        const said = ended.said.filter((each) => !(each.who === "agent" && each.turn === turn && isFrom(each, path)));
        return grow({ ...ended, said }, path, { who: "agent", turn, key: `${turn}.final` }, text);
      }
      case "text.delta":
        return grow(view, path, { who: "agent", turn: event.turn, key: `${event.turn}.${event.part}` }, event.text);
      case "reasoning.delta":
        return grow(view, path, { who: "thought", turn: event.turn, key: `${event.turn}.${event.part}` }, event.text);
      case "call.ready": {
        const { turn, call: { id, name, input } } = event;
        return say(view, { who: "call", turn, key: at(id), name, input: shown(input), status: "ready", text: "" });
      }
      case "tool.started": {
        const started = change(view, at(event.call), { status: "started" });
        return begin(started, at(`call ${event.call}`), at(`turn ${event.turn}`), event.name, "call");
      }
      case "approval.asked": {
        const asked = change(view, at(event.call), { status: "asks you" });
        return begin(asked, at(`asked ${event.call}`), at(`call ${event.call}`), "a person is asked");
      }
      case "approval.decided": {
        const did = `${event.decision === "allow" ? "allowed" : "denied"} by ${event.by}`;
        return note(change(view, at(event.call), { status: did }), at(`call ${event.call}`), did);
      }
      case "tool.progress":
        return change(view, at(event.call), { status: `running: ${shown(event.data)}` });
      case "tool.finished": {
        const { status, parts } = event.result;
        return end(change(view, at(event.call), { status, text: textOf(parts) }), at(`call ${event.call}`), status);
      }
      case "hook.acted":
        return acted(view, path, event);
      case "subagent.event":
        return hear(view, event.event, `${path}${event.call}/`);
      case "compact.started":
        return begin(view, at("compact"), at("session"), `compact (${event.trigger})`);
      case "compact.finished":
        return end(view, at("compact"), event.status);
      case "notice":
        return say(view, { who: "note", key: `note ${id}`, text: event.text });
      case "warning":
        return say(view, { who: "note", key: `note ${id}`, text: `Warning: ${event.message}` });
      case "steering.injected": {
        const text = event.messages.map(({ parts }) => textOf(parts)).join("\n");
        const said = view.said.filter(({ key }) => !key.startsWith("waits ")); // now it is said
        return say({ ...view, said }, { who: "you", key: `steered ${id}`, text });
      }
      default:
        return path ? view : leave(view, event);
    }
  }

  /** The run pauses, or it is over. */
  function leave(view: View, event: Event): View {
    switch (event.type) {
      case "run.paused": {
        const { questions, resumeToken } = event;
        return {
          ...close(view),
          status: "paused",
          questions,
          since: now,
          ...(resumeToken !== undefined && { resumeToken }),
        };
      }
      case "run.finished": {
        const { status, reason } = event;
        return over(view, status, status === "done" ? "" : reason === undefined ? status : `${status}: ${reason}`);
      }
      case "run.failed":
        return over(view, "failed", event.message);
      case "run.aborted":
        return over(view, "aborted", `Stopped: ${event.reason}`);
      default:
        return view;
    }
  }

  /** Milliseconds of the run so far, without those in which it waited. */
  function elapsed(view: View): number {
    return Math.max(0, now - view.began - view.waited);
  }

  function begin(view: View, of: string, under: string, name: string, kind: Span["kind"] = "point"): View {
    const above = under && view.spans.findLast((span) => span.of === under)?.key || "";
    const span: Span = { key: `${id}`, of, under: above, around: false, kind, name, from: elapsed(view), did: "" };
    return { ...view, spans: [...view.spans, span] };
  }

  function isOpen(view: View, of: string): boolean {
    return view.spans.some((span) => span.of === of && span.to === undefined);
  }

  /** Says of what goes on what it did. */
  function note(view: View, of: string, did: string): View {
    const index = view.spans.findLastIndex((span) => span.of === of && span.to === undefined);
    const span = view.spans[index];
    return span ? { ...view, spans: view.spans.with(index, { ...span, did }) } : view;
  }

  function end(view: View, of: string, did?: string): View {
    const to = elapsed(view);
    const { spans } = did === undefined ? view : note(view, of, did);
    return { ...view, spans: spans.map((span) => span.of === of && span.to === undefined ? { ...span, to } : span) };
  }

  /** A hook is around its point, where that is told of: its call, its request, its turn, its prompt, its session. */
  function acted(view: View, path: string, event: Extract<Event, { type: "hook.acted" }>): View {
    const { middleware, point, turn, call, did, changed, decided, ms } = event;
    const place = call ? `call ${call}` : turn ? `${point === "model" ? "model" : "turn"} ${turn}` : point;
    const find = (of: string) => view.spans.findLast((span) => span.of === path + of);
    const own = find(place);
    const what = did.map((act) => act === "changed" && changed ? `changed ${changed.join(", ")}` : act).join(", ");
    const under = (own ?? find("prompt") ?? find("session"))?.key ?? "";
    const to = elapsed(view);
    const began = Math.max(0, to - ms);
    // a hook is told of after those that it is around
    const within = view.spans.filter((each) =>
      each.under === under && each.point === point && each.to !== undefined && each.to > began
    );
    const span: Span = {
      key: `${id}`,
      of: "",
      under,
      around: own !== undefined,
      kind: "hook",
      point,
      name: `${middleware} at ${point}`,
      from: Math.min(began, ...within.map(({ from }) => from)),
      to,
      did: decided === undefined ? what : `${what}: ${decided}`,
    };
    return { ...view, spans: [...around(span, view.spans), span] };
  }

  /** A point is told of when its core begins, and its hooks when they are done: it has been there for as long as they were. */
  function around({ under, from, to = from }: Span, spans: readonly Span[]): readonly Span[] {
    const index = spans.findIndex(({ key }) => key === under);
    const span = spans[index];
    if (!span) return spans;
    const end = span.to === undefined ? {} : { to: Math.max(span.to, to) };
    const wider = { ...span, from: Math.min(span.from, from), ...end };
    return around(wider, spans.with(index, wider));
  }

  /** Ends whatever goes on. */
  function close(view: View): View {
    const to = elapsed(view);
    return { ...view, spans: view.spans.map((span) => span.to === undefined ? { ...span, to } : span) };
  }

  function over(view: View, status: string, text: string): View {
    const ended = { ...close(view), status, questions: [] };
    return text ? say(ended, { who: "note", key: `end ${id}`, text }) : ended;
  }

  /** Adds to what was said, or changes what has this key. */
  function say(view: View, said: Said): View {
    const key = `${view.run} ${said.key}`;
    const index = view.said.findIndex((each) => each.key === key);
    const whole = { ...view.said[index], ...said, key };
    return { ...view, said: index < 0 ? [...view.said, whole] : view.said.with(index, whole) };
  }

  function grow(view: View, path: string, piece: Omit<Said, "text">, text: string): View {
    const key = `${path}${piece.key}`;
    const before = view.said.find((each) => each.key === `${view.run} ${key}`)?.text ?? "";
    return say(view, { ...piece, key, text: before + text, ...(path && { name: path.slice(0, -1) }) });
  }

  function change(view: View, of: string, news: Partial<Said>): View {
    const key = `${view.run} ${of}`;
    return { ...view, said: view.said.map((each) => each.key === key ? { ...each, ...news } : each) };
  }

  /** The model starts over: what it had said in this turn is gone. */
  function forget(view: View, path: string, turn: number): View {
    return { ...view, said: view.said.filter((each) => !(each.turn === turn && isFrom(each, path))) };
  }

  function isFrom({ key }: Said, path: string): boolean {
    const own = key.slice(`${view.run} `.length);
    return key.startsWith(`${view.run} ${path}`) && !own.slice(path.length).includes("/");
  }

  function textOf(
    parts: readonly { readonly type: string; readonly text?: string; readonly mediaType?: string }[],
  ): string {
    return parts.map(({ text, mediaType }) => text ?? `[${mediaType}]`).join("\n");
  }

  function shown(value: unknown): string {
    return typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
  }
}
