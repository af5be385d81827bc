// A broker of mochi, as it is by default, on two ports: TCP and WebSocket. Ends with its standard input.
package main

import (
	"io"
	"log"
	"log/slog"
	"os"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
)

func main() {
	errors := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	server := mqtt.New(&mqtt.Options{Logger: slog.New(errors)})
	must(server.AddHook(new(auth.AllowHook), nil))
	must(server.AddListener(listeners.NewTCP(listeners.Config{ID: "tcp", Address: os.Args[1]})))
	must(server.AddListener(listeners.NewWebsocket(listeners.Config{ID: "ws", Address: os.Args[2]})))
	must(server.Serve())
	io.Copy(io.Discard, os.Stdin)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
