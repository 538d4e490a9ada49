/**
 * Questions on the page.
 *
 * @module
 */
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import type { Element } from "./dom.ts";
import type { Elements } from "./elements.ts";

/**
 * Creates the form for a question. A question about a call can be approved, with its input or a changed one, denied, or answered in place of the tool. Runs in
 * the page, so it uses nothing outside itself.
 */
export function drawQuestion(
  { make }: Elements,
  { callId, tool, input, questions }: Question,
  answer: (answer: PersonAnswer) => void,
): Element {
  const form = make("form", "question", make("p", "asked", questions.join(" ")));
  form.addEventListener("submit", (event) => event.preventDefault());
  if (callId === undefined) {
    const reply = field("Your answer", "");
    form.append(button("Reply", () => answer({ type: "reply", text: reply.value })));
    return form;
  }
  const inputText = JSON.stringify(input, null, 2) ?? "";
  const inputField = field(`Input of ${tool}`, inputText);
  const text = field("Reason to deny, or an answer in its place", "");
  const always = make("input", "");
  always.setAttribute("type", "checkbox");
  form.append(
    button("Approve", approve),
    button("Deny", () => answer({ callId, type: "deny", ...(text.value && { reason: text.value }) })),
    button("Answer instead", () => answer({ callId, type: "reply", text: text.value })),
    make("label", "always", always, `Do not ask about ${tool} again`),
  );
  return form;

  function approve(): void {
    const rule = always.checked ? { always: "tool" } as const : {};
    inputField.setCustomValidity("");
    try {
      const changed = inputField.value === inputText ? {} : { input: JSON.parse(inputField.value) };
      answer({ callId: callId ?? "", type: "approve", ...changed, ...rule });
    } catch (error) {
      inputField.setCustomValidity(String(error));
      inputField.reportValidity();
    }
  }

  function field(name: string, text: string): Element {
    const area = make("textarea", "");
    area.value = text;
    area.setAttribute("rows", String(Math.min(8, text.split("\n").length)));
    form.append(make("label", "", name, area));
    return area;
  }

  function button(name: string, onClick: () => void): Element {
    const element = make("button", name.toLowerCase().replaceAll(" ", "-"), name);
    element.setAttribute("type", "button");
    element.addEventListener("click", onClick);
    return element;
  }
}
