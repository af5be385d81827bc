"""A client of paho: subscribes to what it publishes itself, COUNT messages of each QoS, and prints each that comes.

Usage: paho_client.py HOST PORT TRANSPORT PROTOCOL_VERSION COUNT
"""

import sys
import threading

import paho.mqtt.client as mqtt

host, port, transport, version, count = sys.argv[1:6]
subscribed, whole = threading.Event(), threading.Event()
heard = 0


def on_message(client, _, message):
    global heard
    print(message.topic, message.qos, message.payload.decode(), flush=True)
    heard += 1
    if heard == 3 * int(count):
        whole.set()


client = mqtt.Client(client_id="paho", transport=transport, protocol=int(version))
client.on_message = on_message
client.on_subscribe = lambda *_: subscribed.set()
client.connect(host, int(port))
client.loop_start()
client.subscribe("py/+", qos=2)
assert subscribed.wait(20), "no SUBACK"
for qos in (0, 1, 2):
    for number in range(int(count)):
        client.publish(f"py/{qos}", str(number), qos=qos).wait_for_publish()
assert whole.wait(20), f"{heard} messages came"
client.disconnect()
client.loop_stop()
