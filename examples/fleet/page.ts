/**
 * The page that shows which process holds which run.
 *
 * @module
 */

/** The page, as HTML. It looks for changes twice a second. */
export const page = `<!doctype html>
<meta charset="utf-8">
<title>Fleet</title>
<style>
  body { font: 16px system-ui; margin: 2rem; color: #222; }
  table { border-collapse: collapse; }
  td, th { border: 1px solid #ccc; padding: 0.4rem 0.8rem; text-align: left; }
  .dead { color: #999; }
</style>
<h1>Fleet</h1>
<table><thead><tr><th>Process<th>State<th>Runs<th></tr><tbody></tbody></table>
<script>
  const body = document.querySelector("tbody");
  const cell = (row, text) => row.insertCell().append(text);
  async function show() {
    const members = await (await fetch("/fleet")).json();
    body.replaceChildren(...members.map(({ name, alive, runs }) => {
      const row = document.createElement("tr");
      row.className = alive ? "" : "dead";
      cell(row, name);
      cell(row, alive ? "serves" : "dead");
      cell(row, runs.join(", ") || "none");
      const kill = Object.assign(document.createElement("button"), { textContent: "Kill", disabled: !alive });
      kill.onclick = () => fetch("/fleet/" + name + "/kill", { method: "POST" });
      cell(row, kill);
      return row;
    }));
  }
  setInterval(show, 500);
  show();
</script>
`;
