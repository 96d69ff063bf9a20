// Sends what standard input asks for, head and body apart, on one kept connection; prints the outcomes.
import http from "node:http";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const { port, asked, body, next, ms } = JSON.parse(readFileSync(0, "utf-8"));
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

function exchange(method, path, headers, sent) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: "127.0.0.1", port, method, path, headers, agent }, (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer));
      answer.on("error", reject);
    });
    request.on("error", reject);
    if (sent === undefined) {
      request.end();
    } else {
      request.flushHeaders();
      (ms ? pause(ms) : Promise.resolve()).then(() => request.end(sent));
    }
  });
}

const outcomes = {};
for (const [method, path, headers] of asked) {
  let outcome;
  try {
    const refused = await exchange(method, path, headers, body);
    const { statusCode } = await exchange("GET", next, {});
    outcome = refused.headers.connection === "close" ? "the end announced" : "the next answered";
    outcome = statusCode === 200 ? outcome : `node: ${statusCode}`;
  } catch (error) {
    outcome = `node: ${error.code ?? error}`;
  }
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
}
agent.destroy();
process.stdout.write(JSON.stringify(outcomes));
