// A broker of aedes, as it is by default, on two ports: TCP and WebSocket. Ends with its standard input.
import { Aedes } from "aedes";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { WebSocketServer, createWebSocketStream } from "ws";

const [tcp, ws] = process.argv.slice(2).map(Number);
const broker = await Aedes.createBroker();
createServer(broker.handle).listen(tcp, "127.0.0.1");
const http = createHttpServer();
const sockets = new WebSocketServer({ server: http, handleProtocols: () => "mqtt" });
sockets.on("connection", (socket, request) => broker.handle(createWebSocketStream(socket), request));
http.listen(ws, "127.0.0.1");
process.stdin.on("end", () => process.exit(0)).resume();
