/**
 * Questions to the person, as they are drawn.
 *
 * @module
 */
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import type { Element } from "./dom.ts";
import type { Elements } from "./elements.ts";

/**
 * A form for a question: to allow what is asked about, or a change of it, to deny it, or to answer in its place. Runs in the page: it reaches for nothing
 * outside of itself.
 */
export function drawQuestion(
  { make }: Elements,
  { callId, tool, input, questions }: Question,
  answer: (answer: PersonAnswer) => void,
): Element {
  const form = make("form", "question", make("p", "asked", questions.join(" ")));
  form.addEventListener("submit", (event) => event.preventDefault());
  if (callId === undefined) {
    const words = field("Your answer", "");
    form.append(button("Reply", () => answer({ type: "reply", text: words.value })));
    return form;
  }
  const seen = JSON.stringify(input, null, 2) ?? "";
  const given = field(`What ${tool} is given`, seen);
  const words = field("Why not, or an answer in its place", "");
  const always = make("input", "");
  always.setAttribute("type", "checkbox");
  form.append(
    button("Approve", approve),
    button("Deny", () => answer({ callId, type: "deny", ...(words.value && { reason: words.value }) })),
    button("Answer instead", () => answer({ callId, type: "reply", text: words.value })),
    make("label", "always", always, `Do not ask about ${tool} again`),
  );
  return form;

  function approve(): void {
    const rule = always.checked ? { always: "tool" } as const : {};
    given.setCustomValidity("");
    try {
      const changed = given.value === seen ? {} : { input: JSON.parse(given.value) };
      answer({ callId: callId ?? "", type: "approve", ...changed, ...rule });
    } catch (error) {
      given.setCustomValidity(String(error));
      given.reportValidity();
    }
  }

  function field(name: string, text: string): Element {
    const area = make("textarea", "");
    area.value = text;
    area.setAttribute("rows", String(Math.min(8, text.split("\n").length)));
    form.append(make("label", "", name, area));
    return area;
  }

  function button(name: string, press: () => void): Element {
    const element = make("button", name.toLowerCase().replaceAll(" ", "-"), name);
    element.setAttribute("type", "button");
    element.addEventListener("click", press);
    return element;
  }
}
