// Keeps short notes in memory for other programs.
import http from "node:http";

const notes = new Map();
let last = 0;

http.createServer(async (request, response) => {
  const [code, body] = route(request.method, request.url, await read(request));
  response.writeHead(code, { "Content-Type": "application/json" });
  response.end(body && JSON.stringify(body));
}).listen(process.env.PORT, "127.0.0.1");

async function read(request) {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

function route(method, url, text) {
  const id = url.match(/^\/notes\/([^/]+)$/)?.[1];
  if (method === "GET" && url === "/health") return [200, { status: "ok" }];
  if (method === "POST" && url === "/notes") return add(text);
  if (!notes.has(id)) return [404, { error: "there is no such note" }];
  if (method === "GET") return [200, { id, text: notes.get(id) }];
  notes.delete(id);
  return [204];
}

function add(body) {
  let text;
  try {
    ({ text } = JSON.parse(body));
  } catch {
    // What is no JSON has no text.
  }
  if (!text) return [400, { error: "a note is an object with a text" }];
  const id = String(++last);
  notes.set(id, text);
  return [201, { id }];
}
