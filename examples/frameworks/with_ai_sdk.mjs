// Vercel's AI SDK: the tools over MCP. The client library is Python's; the SDK keeps its messages.
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as Stdio } from "@ai-sdk/mcp/mcp-stdio";
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs } from "ai";

const transport = new Stdio({ command: "fetchstash", args: ["serve"] });
const fetchstash = await createMCPClient({ transport });
try {
  const { text } = await generateText({
    model: openai("gpt-5"),
    tools: await fetchstash.tools(),
    stopWhen: stepCountIs(20),
    prompt: process.argv[2],
  });
  console.log(text);
} finally {
  await fetchstash.close();
}
