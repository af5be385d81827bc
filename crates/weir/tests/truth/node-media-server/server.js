// node-media-server on two ports: RTMP in, HTTP-FLV out. Ends with its stdin.
const NodeMediaServer = require("node-media-server");
const [rtmp, http] = process.argv.slice(2).map(Number);
const server = new NodeMediaServer({
  logType: 1,
  rtmp: { port: rtmp, chunk_size: 60000, gop_cache: true, ping: 30, ping_timeout: 60 },
  http: { port: http, allow_origin: "*", mediaroot: "./media" },
});
server.run();
process.stdin.on("end", () => process.exit(0)).resume();
