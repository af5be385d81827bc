"""Answers requests (MQTT 5 section 4.10) after 200 ms: the first of ten twice, the second under another correlation, the third never."""

import sys
import time

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

host, port, topic = sys.argv[1], int(sys.argv[2]), sys.argv[3]
count = 0


def on_message(client, _, message):
    global count
    turn = count % 10
    count += 1
    time.sleep(0.2)
    correlation = message.properties.CorrelationData
    if turn == 1:
        correlation = b"another's"
    answer = Properties(PacketTypes.PUBLISH)
    answer.CorrelationData = correlation
    for _ in range({0: 2, 2: 0}.get(turn, 1)):
        client.publish(message.properties.ResponseTopic, b"answer", properties=answer)


def on_subscribe(*_):
    print("subscribed", flush=True)


arguments = {}
if hasattr(mqtt, "CallbackAPIVersion"):
    arguments["callback_api_version"] = mqtt.CallbackAPIVersion.VERSION1
client = mqtt.Client(protocol=mqtt.MQTTv5, **arguments)
client.on_message, client.on_subscribe = on_message, on_subscribe
client.on_connect = lambda client, *_: client.subscribe(topic)
client.connect(host, port)
client.loop_forever()
