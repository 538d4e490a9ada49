/**
 * Decisions in the forms of other systems: a denial that a hook returns in a form that its own system does not know is a denial all the same.
 *
 * Names and words are compared without their case and without `_` and `-`. The members that contain inputs, results and texts are not searched.
 *
 * @module
 */
import { parseJson } from "./answers.ts";

/** A decision in an unknown form. */
export interface ForeignDecision {
  /** A deny, or a question for a person. */
  readonly type: "deny" | "ask";
  /** The member that decides, such as `decision.action`. */
  readonly member: string;
  readonly reason?: string | undefined;
}

/** Whether the system of the hook has read a member, so that its meaning is known. */
type IsRead = (member: string) => boolean;

/** Returns the decision in an answer that its own system has not read. A deny counts before a question. */
export function foreignDecision(answer: unknown, isRead: IsRead = () => false): ForeignDecision | undefined {
  const found = new Search(isRead);
  found.value(answer, { path: [], name: "", reason: undefined, isAnswer: true });
  return found.deny ?? found.ask;
}

/** Returns the decision in a text in which an answer is surrounded by other text, or is broken. */
export function decisionInText(text: string): ForeignDecision | undefined {
  const whole = parseJson(text);
  if (whole !== undefined) return foreignDecision(whole);
  const pieces = objectsIn(text);
  if (pieces.length > limits.members) return { type: "deny", member: "the answer itself", reason: tooLarge };
  let ask: ForeignDecision | undefined;
  for (const piece of pieces) {
    const parsed = parseJson(piece);
    const found = parsed === undefined ? decisionInBroken(piece) : foreignDecision(parsed);
    if (found?.type === "deny") return found;
    ask ??= found;
  }
  return ask;
}

/** The deepest nesting, and the most members, of an answer that is searched. A larger one denies. */
const limits = { depth: 20, members: 10_000 };
const tooLarge = "The answer of a hook is too large.";
/** The most characters of a reason. */
const longest = 10_000;

/** Members whose words decide. */
const deciding =
  /^(?:permission|action|verdict|effect|outcome|status|kind|type|result|resulttype|response|answer|approval|judge?ment|policy|access)$|(?:decision|behaviou?r)$/;
/** The members among them that often describe something else than a decision: only one word that denies counts. */
const describing = /^(?:status|kind|outcome|result|response|answer)$/;
/** The members among them that may be false. */
const judging = /^(?:permission|verdict|approval|result)$|decision$/;
/** Members that deny if they are true, or have a text. */
const denying =
  /^(?:is|should|must)?(?:den(?:y|ied)|block(?:ed)?|reject(?:ed)?|refused?|declined?|forbid(?:den)?|(?:dis|not)allow(?:ed)?|prohibit(?:ed)?|abort(?:ed)?|cancel(?:l?ed)?|skip|veto(?:ed)?|halt|stop|prevent(?:default)?)(?:tool|call|turn|execution|request|prompt|run)?$/;
/** Members that deny if they are false. */
const allowing =
  /^(?:is|should|may|can)?(?:approv(?:ed?|al)|allow(?:ed)?|permit(?:ted)?|accept(?:ed)?|authori[sz]ed?|grant(?:ed)?|continue|proceed|ok(?:ay)?)(?:tool|call|execution|request|prompt|run)?$/;
/** The members among those that mean nothing else, so that they count anywhere in an answer. */
const certain = /^(?:is)?(?:approved|blocke?d?|den(?:y|ied)(?:tool)?|continue)$/;
/** Members around a decision. Elsewhere, such as in a list of checks, only certain members and the words of deciding ones count. */
const around =
  /^(?:hook\w*|\w*output|result|response|answer|reply|\w*decision|verdict|permission|action|data|payload|body|value|return(?:ed|value)?)$/;
/** Members that contain data and not the decision about it. */
const data =
  /^(?:tool(?:s|input|args?|arguments|result|response|output|calls?|name)|arguments|args|inputs?|updated\w*|modified\w*|call|params|request|suggestions|permissionsuggestions|rules|context|additionalcontext|messages?|content|text|meta|metadata|env|headers|schema|media|images?|hookresult|systemmessage|config|settings|watchpaths|prompt|transformedprompt|error)$/;
/** Members that contain the reason. */
const reasons = /^(?:permissiondecisionreason|reason|denialreason|message|stopreason|feedback|why|explanation)$/;

const denyWord =
  /^(?:hard)?(?:den(?:y|ied)|block|reject|refuse|declin|forbid|prohibit|veto|(?:dis|not|un)(?:allow|approv|permit|authori[sz]))/;
const stopWord = /^(?:hard)?(?:abort|cancel|skip|stop|halt|terminate)|^(?:no|false|never)$/;
const oneWord = /^\s*[\w-]+[.!]?\s*$/;
const askWord = /^(?:ask|askuser|confirm|pause)$/;
const falseWord = /^(?:false|no|never|0|none)$/;

/** Folds a name or a word: "hard_abort" and "hardAbort" are the same. */
function fold(text: string): string {
  return text.slice(0, 64).toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** The place of a value in an answer. */
interface Place {
  readonly path: readonly string[];
  /** The folded name of its member. */
  readonly name: string;
  /** The reason in the objects around it. */
  readonly reason: string | undefined;
  /** Whether it is in the answer itself, and not among other data. */
  readonly isAnswer: boolean;
}

/** The search of one answer. */
class Search {
  deny: ForeignDecision | undefined;
  ask: ForeignDecision | undefined;
  readonly #isRead: IsRead;
  readonly #seen = new Set<unknown>();
  #count = 0;

  constructor(isRead: IsRead) {
    this.#isRead = isRead;
  }

  /** Searches a value, unless the system has read it. */
  value(value: unknown, place: Place): void {
    if (this.deny || value === undefined || value === null) return;
    if (++this.#count > limits.members || place.path.length > limits.depth) {
      this.#found("deny", { ...place, reason: tooLarge });
    } else if (typeof value === "object") this.#members(value, place);
    else if (place.path.length > 0 && this.#isRead(place.path.join("."))) return;
    else if (typeof value === "string" && isFraming(place.name) && /^\s*[[{"]/.test(value)) this.#text(value, place);
    else this.#word(value, place);
  }

  #found(type: "deny" | "ask", { path, reason }: Place, ownReason?: unknown): void {
    const isReason = typeof ownReason === "string" && !/^(?:true|yes|1)?$/i.test(ownReason.trim());
    const found = {
      type,
      member: path.join(".").slice(0, 200) || "the answer itself",
      reason: isReason ? ownReason.slice(0, longest) : reason,
    };
    if (type === "deny") this.deny ??= found;
    else this.ask ??= found;
  }

  #members(value: object, place: Place): void {
    if (this.#seen.has(value)) return;
    this.#seen.add(value);
    if (Array.isArray(value)) return value.forEach((each) => this.value(each, place));
    const entries = Object.entries(value);
    const [, ownReason] = entries.find(([name, text]) => reasons.test(fold(name)) && typeof text === "string") ?? [];
    const reason = ownReason === undefined ? place.reason : String(ownReason).slice(0, longest);
    for (const [name, member] of entries) {
      const folded = fold(name);
      if (reasons.test(folded) || (data.test(folded) && !denying.test(folded))) continue;
      const isAnswer = place.isAnswer && (typeof member !== "object" || isFraming(folded) || denying.test(folded));
      this.value(member, { path: [...place.path, name], name: folded, reason, isAnswer });
    }
    if (place.isAnswer && entries.length > 0 && denying.test(place.name)) this.#found("deny", { ...place, reason });
  }

  #text(text: string, place: Place): void {
    const found = decisionInText(text);
    if (found) this.#found(found.type, { ...place, reason: found.reason ?? place.reason });
  }

  #word(value: unknown, place: Place): void {
    const { name, isAnswer } = place;
    const word = fold(String(value));
    const isFalse = value === false || value === 0 || falseWord.test(word);
    const counts = isAnswer || certain.test(name);
    if (counts && denying.test(name) && !isFalse && (value !== "" || stopWord.test(name))) {
      return this.#found("deny", place, value);
    }
    if (counts && allowing.test(name) && (isFalse || denyWord.test(word))) return this.#found("deny", place);
    if (isAnswer && judging.test(name) && value === false) return this.#found("deny", place);
    if (isAnswer && /^(?:exit|return)code$/.test(name) && value === 2) return this.#found("deny", place); // that of a command
    if (typeof value !== "string" || !isFraming(name)) return;
    const isLoose = deciding.test(name) && !describing.test(name);
    const isWord = oneWord.test(value);
    if (denyWord.test(word) && (isLoose || (isWord && isAnswer))) this.#found("deny", place);
    else if (!isWord || !isAnswer || (name !== "" && !isLoose)) return;
    else if (stopWord.test(word)) this.#found("deny", place);
    else if (askWord.test(word)) this.#found("ask", place);
  }
}

/** Whether a member, or the answer itself, may be a decision or contain one. */
function isFraming(name: string): boolean {
  return name === "" || deciding.test(name) || around.test(name);
}

/** Finds the objects in a text, also one that does not end. Takes linear time. */
function objectsIn(text: string): readonly string[] {
  const found: string[] = [];
  for (let at = text.indexOf("{"); at >= 0; at = text.indexOf("{", at)) {
    const end = endOf(text, at);
    found.push(text.slice(at, end));
    at = end;
  }
  return found;
}

/** Returns the position behind the object that begins at `start`. */
function endOf(text: string, start: number): number {
  let depth = 0;
  let isText = false;
  for (let at = start; at < text.length; at++) {
    const char = text[at];
    if (char === '"') isText = !isText;
    else if (isText && char === "\\") at++;
    else if (!isText && char === "{") depth++;
    else if (!isText && char === "}" && --depth === 0) return at + 1;
  }
  return text.length;
}

/** Returns the decision in a text that is no JSON, such as `{'decision': 'block'}`: of each pair of a name and a word. */
function decisionInBroken(text: string): ForeignDecision | undefined {
  const pairs = text.replaceAll("\\", "").matchAll(
    /["']?([A-Za-z][\w-]{0,40})["']?\s{0,20}[:=]\s{0,20}["']?([A-Za-z_-]{1,40})/g,
  );
  const found = Array.from(pairs, ([, name = "", word = ""]) => foreignDecision({ [name]: word }));
  return found.find((each) => each?.type === "deny") ?? found.find((each) => each);
}
