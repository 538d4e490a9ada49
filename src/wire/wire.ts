/**
 * The wire port: a client dialect, as a pure mapping both ways. What a client sends becomes what is asked for, what happens in a run becomes what the
 * client is told. Sessions, owners, records, limits and whatever else a server has are those of its other routes.
 *
 * @module
 */
import type { AnyTool } from "../core/tool.ts";
import type { Event } from "../protocol/event.ts";
import type { PersonAnswer, Question } from "../protocol/question.ts";
import type { Message } from "../protocol/message.ts";
import type { Session } from "../protocol/session.ts";

/** A client dialect. */
export interface Wire {
  /** Where an agent of this name is spoken to. */
  routes(agent: string): readonly WireRoute[];
}

/** One address of a dialect. */
export interface WireRoute {
  /** The method; what a POST sends is JSON. */
  readonly method: "GET" | "POST" | "DELETE";
  /** The path, in which `:name` stands for anything. */
  readonly path: string;
  /** What a request asks for. Throws a `ShapeError` for one that cannot be read. */
  read(request: WireRequest): Wanted;
  /** How a client is told that its request is refused, or has failed. Default: `{ error }`. */
  readonly refuse?: (refused: Refused) => object;
}

/** Why a request is not served. */
export interface Refused {
  /** The status of the response. */
  readonly status: number;
  /** Why, for programs. */
  readonly code: string;
  /** Why, for people. */
  readonly message: string;
  /** The field that is wrong. */
  readonly field?: string | undefined;
  /** By which the operator was told, where it failed. */
  readonly id?: string;
}

/** A request, as a wire reads it. */
export interface WireRequest {
  /** What stands in the path, by name. */
  readonly params: Readonly<Record<string, string>>;
  /** What was sent. */
  readonly body: unknown;
  /** The session that the address stands for, where it does: it counts in place of whatever the client calls it. */
  readonly session: string | undefined;
}

/** What a request asks for: to talk, to hear the rest of the run that a session has, to stop that run, to see a session, or to know something. */
export type Wanted =
  | Talk
  | { readonly type: "follow"; readonly session: string; readonly reply: Reply }
  | { readonly type: "stop"; readonly session: string }
  | { readonly type: "show"; readonly session: string; body(session: Session): object }
  | { readonly type: "know"; readonly body: object };

/** A prompt, or answers to what a session asks. */
export interface Talk {
  /** Tells it from what else may be asked for. */
  readonly type: "talk";
  /** The session, made where there is none. Default: a new one. */
  readonly session?: string | undefined;
  /** Whether the session has to be there. Default: false. */
  readonly known?: boolean | undefined;
  /** What came with the pause that is answered, where the client keeps that. Default: the server does. */
  readonly resumeToken?: string | undefined;
  /** What is said to a session that asks this. */
  say(waiting: Waiting): Said;
  /** How the client is told of the run. */
  readonly reply: Reply;
}

/** What a session waits for. */
export interface Waiting {
  /** What is asked; nothing where it is not paused. */
  readonly questions: readonly Question[];
  /** The number of the event that asked it: answers to another pause do not count for this one. */
  readonly pause: number;
}

/** What a client says. `tools` are those that it runs itself. */
export type Said =
  & { readonly tools?: readonly AnyTool[] }
  & ({ readonly messages: readonly Message[] } | { readonly answers: readonly PersonAnswer[] });

/** How a client is told of a run: frame by frame, or once it is over. `headers` are sent beside those of every such response. */
export type Reply =
  & { readonly headers?: Readonly<Record<string, string>> }
  & (
    | {
      readonly type: "stream";
      /** Begins a response; gives the frames of an event, by its number in the run. */
      open(): (event: Event, id: number) => string;
    }
    | {
      readonly type: "whole";
      /** Begins a response; gives it once it is complete. */
      open(): (event: Event, id: number) => Whole | undefined;
    }
  );

/** A response that comes as a whole. */
export interface Whole {
  /** The status; anything but 200 where the run failed. */
  readonly status: 200 | 500;
  /** What it says, as JSON. */
  readonly body: object;
}
