// Serves pi-web-access, an extension of the Pi agent, as an MCP server: pi-web-access.mjs ENVIRONMENT.
// Pi's own part is played by the few functions that the extension calls of it.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

console.log = console.error;
const modules = join(process.argv[2], "node_modules");
const { createJiti } = createRequire(join(modules, "x.js"))("jiti");
// The pi-ai that runs on node 20 has in its index what a later one has in compat.
const alias = { "@earendil-works/pi-ai/compat": join(modules, "@earendil-works", "pi-ai", "dist", "index.js") };
const extension = await createJiti(join(modules, "x.js"), { alias }).import(join(modules, "pi-web-access", "index.ts"));
const tools = new Map();
const nothing = () => undefined;
const pi = new Proxy({}, { get: (_, name) => (name === "registerTool" ? (tool) => tools.set(tool.name, tool) : nothing) });
await extension.default(pi);
const ui = new Proxy({}, { get: () => nothing });
const context = { cwd: process.cwd(), hasUI: false, ui, sessionManager: { getSessionId: () => "1", getEntries: () => [], getBranch: () => [] } };

async function result(method, params) {
  if (method === "initialize") return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "pi-web-access", version: "1" } };
  if (method === "tools/list") return { tools: [...tools.values()].map(({ name, description, parameters }) => ({ name, description, inputSchema: parameters })) };
  if (method !== "tools/call") return {};
  try {
    return { content: (await tools.get(params.name).execute("1", params.arguments, undefined, nothing, context)).content };
  } catch (error) {
    return { content: [{ type: "text", text: String(error) }], isError: true };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (!("id" in message)) continue;
  result(message.method, message.params).then((answer) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: answer }) + "\n"));
}
