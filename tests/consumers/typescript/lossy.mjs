// A proxy before the service that drops connections as seeded chance has it: before it asks, or after the answer.
import { createServer, request } from "node:http";

function chance(seed) {
  return () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
}

// Returns its address, a count of what it has dropped, and a function that ends it.
export async function lossy(upstream, seed) {
  const [asks, answers] = [chance(seed), chance(seed + 1)]; // else the order of both decides how many each drops
  const dropped = { before: 0, after: 0 };
  const server = createServer((asked, answered) => {
    if (asks() < 0.15) {
      dropped.before += 1;
      asked.socket.destroy();
      return;
    }
    const { method, headers, url } = asked;
    const forwarded = request(new URL(url, upstream), { method, headers }, (answer) => {
      const chunks = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("end", () => {
        if (answers() < 0.2) {
          dropped.after += 1;
          asked.socket.destroy();
          return;
        }
        answered.writeHead(answer.statusCode, answer.rawHeaders);
        answered.end(Buffer.concat(chunks));
      });
    });
    forwarded.on("error", () => asked.socket.destroy());
    asked.pipe(forwarded);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const end = () => {
    server.close();
    server.closeAllConnections();
  };
  return { address: `http://127.0.0.1:${server.address().port}`, dropped, end };
}
