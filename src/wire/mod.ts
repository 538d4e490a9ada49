/**
 * The wire port and the shapes that parse requests, for authors of client dialects.
 *
 * @module
 */
export {
  array,
  boolean,
  count,
  type Fields,
  id,
  invalid,
  json,
  jsonObject,
  lazy,
  object,
  oneOf,
  optional,
  type Shape,
  ShapeError,
  string,
  type Tagged,
  variant,
  type Variants,
} from "../protocol/shape.ts";
export { type RepairedTranscript, repairTranscript } from "../core/transcript.ts";
export type {
  ChatInput,
  EventEncoder,
  Input,
  JsonResponse,
  ParsedRequest,
  Pause,
  PendingQuestions,
  Prompt,
  Reply,
  ResponseCollector,
  RunParts,
  Wire,
  WireAgent,
  WireError,
  WireRequest,
  WireRoute,
} from "./wire.ts";
export type { AnswerFormat } from "../core/definition.ts";
export type { DirectCall } from "../core/position.ts";
