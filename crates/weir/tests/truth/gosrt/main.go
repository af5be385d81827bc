// A server of gosrt, which shares nothing with weir or libsrt: it takes one stream and plays it to all who ask for it.
//
// Usage: serve [PASSPHRASE]. It prints its port; with a passphrase it takes no caller without it. A stream ID with m=publish publishes,
// any other plays. It ends with its standard input, and prints its connections as JSON: the stream ID of each, and what gosrt counted.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	srt "github.com/datarhei/gosrt"
)

// One connection that was accepted.
type connection struct {
	StreamID    string                    `json:"stream_id"`
	IsEncrypted bool                      `json:"is_encrypted"`
	Publishes   bool                      `json:"publishes"`
	LatencyMs   uint64                    `json:"latency_ms"`
	Counts      srt.StatisticsAccumulated `json:"counts"`
	conn        srt.Conn
}

type server struct {
	passphrase  string
	stream      srt.PubSub
	lock        sync.Mutex
	connections []*connection
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (s *server) take(request srt.ConnRequest) {
	if request.IsEncrypted() != (s.passphrase != "") {
		request.Reject(srt.REJ_UNSECURE)
		return
	}
	if request.IsEncrypted() && request.SetPassphrase(s.passphrase) != nil {
		request.Reject(srt.REJ_BADSECRET)
		return
	}
	conn, err := request.Accept()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	it := &connection{
		StreamID:    request.StreamId(),
		IsEncrypted: request.IsEncrypted(),
		Publishes:   strings.Contains(request.StreamId(), "m=publish"),
		conn:        conn,
	}
	s.lock.Lock()
	s.connections = append(s.connections, it)
	s.lock.Unlock()
	if it.Publishes {
		s.stream.Publish(conn)
	} else {
		s.stream.Subscribe(conn)
	}
}

func main() {
	it := &server{stream: srt.NewPubSub(srt.PubSubConfig{}), connections: []*connection{}}
	if len(os.Args) > 2 {
		it.passphrase = os.Args[2]
	}
	listener, err := srt.Listen("srt", "127.0.0.1:0", srt.DefaultConfig())
	check(err)
	fmt.Println(listener.Addr().(*net.UDPAddr).Port)
	go func() {
		for {
			request, err := listener.Accept2()
			if err != nil {
				return
			}
			go it.take(request)
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	check(err)
	// What came last goes through several of its queues before it is counted.
	time.Sleep(300 * time.Millisecond)
	it.lock.Lock()
	defer it.lock.Unlock()
	for _, each := range it.connections {
		var said srt.Statistics
		each.conn.Stats(&said)
		each.Counts = said.Accumulated
		each.LatencyMs = said.Instantaneous.MsRecvTsbPdDelay
		if !each.Publishes {
			each.LatencyMs = said.Instantaneous.MsSendTsbPdDelay
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(it.connections))
}
