"""A publisher of paho, whose messages have no mark of weir's: COUNT messages of QoS 2, whose payloads are their numbers, RATE a second.

Usage: paho_publisher.py HOST PORT PROTOCOL_VERSION COUNT RATE
"""

import sys
import time

import paho.mqtt.client as mqtt

host, port, version, count, rate = sys.argv[1:6]
client = mqtt.Client(client_id="paho-publisher", protocol=int(version))
client.max_inflight_messages_set(20)
client.connect(host, int(port))
client.loop_start()
began = time.monotonic()
published = []
for number in range(int(count)):
    due = began + number / float(rate)
    time.sleep(max(0, due - time.monotonic()))
    published.append(client.publish("cuts/x", str(number), qos=2))
for message in published:
    message.wait_for_publish()
client.disconnect()
client.loop_stop()
