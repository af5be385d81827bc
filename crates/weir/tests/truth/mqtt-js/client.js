// A client of MQTT.js: subscribes to what it publishes itself, COUNT messages of each QoS, and prints each that comes.
//
// Usage: client.js URL PROTOCOL_VERSION COUNT
import mqtt from "mqtt";

const [url, version, count] = process.argv.slice(2);
const client = await mqtt.connectAsync(url, { protocolVersion: Number(version), reconnectPeriod: 0 });
const whole = new Promise((done) => {
  let heard = 0;
  client.on("message", (topic, payload, packet) => {
    console.log(topic, packet.qos, payload.toString());
    heard += 1;
    if (heard === 3 * count) done();
  });
});
await client.subscribeAsync("js/+", { qos: 2 });
for (const qos of [0, 1, 2]) {
  for (let number = 0; number < count; number++) {
    await client.publishAsync(`js/${qos}`, `${number}`, { qos });
  }
}
await whole;
await client.endAsync();
