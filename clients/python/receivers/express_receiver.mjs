// A receiver of webhooks with Express. It stands before express.json(), which leaves no raw body.
import express from "express";

import { verify } from "./verify.mjs";

const received = new Map();
const app = express();

app.post("/hook", express.raw({ type: "application/json" }), (request, response) => {
  try {
    const event = verify(request.body, request.headers, process.env.WEBHOOK_SECRET);
    received.set(event.id, event); // it may come again
    response.status(204).end();
  } catch (error) {
    response.status(400).type("text/plain").send(error.message);
  }
});

app.listen(Number(process.env.PORT), "127.0.0.1", () => console.log("ready"));
