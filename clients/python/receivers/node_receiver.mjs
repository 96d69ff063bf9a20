// A receiver of webhooks with Node.js alone.
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";

import { verify } from "./verify.mjs";

const received = new Map();

const server = createServer(async (request, response) => {
  try {
    const event = verify(await buffer(request), request.headers, process.env.WEBHOOK_SECRET);
    received.set(event.id, event); // it may come again
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(400, { "Content-Type": "text/plain" }).end(error.message);
  }
});
server.listen(Number(process.env.PORT), "127.0.0.1", () => console.log("ready"));
