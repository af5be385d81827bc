// A peer of pion, which shares nothing with weir: plays by WHEP, publishes by WHIP, and is a server of both.
//
// Usage: play URL | publish URL DROP | serve FRAMES [CODEC FILE [LOSS] | into FILE]. "publish" keeps every DROP-th packet from the wire the first time (0:
// none), so that it has to be asked for again. "serve" prints its port: POST /whep plays from it, so many frames and then
// nothing, POST /whip publishes into it. With a codec (VP8, VP9, AV1, H265) pictures are those of a file in IVF, or of H265 in
// Annex B with delimiters, once from its beginning (H264: those that it makes itself); with a loss, about so many percent of the packets of
// pictures are kept from the wire the first time, the same ones for each viewer, and a whole frame is; "into" writes the pictures of who publishes there, in the same forms. A client prints "ready" once media goes. Each ends with its standard input, and
// prints what it has counted as name=number.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
	"github.com/pion/webrtc/v4/pkg/media/h265writer"
	"github.com/pion/webrtc/v4/pkg/media/ivfwriter"
)

// What was counted, of all peers.
var (
	peers, connected, sent, withheld, repeated, reports, nacks, keyframesAsked, reportedLost atomic.Int64
	received, lost, recovered, frames, keyframes, arrived                                    atomic.Int64
	retransmissions, framesHit, framesGone                                                   atomic.Int64
)

func printCounts() {
	for _, count := range []struct {
		name  string
		value *atomic.Int64
	}{
		{"peers", &peers}, {"connected", &connected}, {"sent", &sent}, {"withheld", &withheld},
		{"repeated", &repeated}, {"reports", &reports}, {"nacks", &nacks},
		{"keyframes_asked", &keyframesAsked}, {"reported_lost", &reportedLost}, {"received", &received},
		{"lost", &lost}, {"recovered", &recovered}, {"frames", &frames}, {"keyframes", &keyframes},
		{"arrived", &arrived}, {"retransmissions", &retransmissions},
		{"frames_hit", &framesHit}, {"frames_gone", &framesGone},
	} {
		fmt.Printf("%s=%d ", count.name, count.value.Load())
	}
	fmt.Println()
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The socket of a peer, which counts the media that arrives at it: a goodbye makes pion forget what it has not read yet.
type countingSocket struct{ net.PacketConn }

func (s countingSocket) ReadFrom(into []byte) (int, net.Addr, error) {
	length, from, err := s.PacketConn.ReadFrom(into)
	// RTP, and not RTCP (RFC 7983 section 7, RFC 5761 section 4).
	if err == nil && length >= 12 && into[0]>>6 == 2 && (into[1] < 192 || into[1] > 223) {
		arrived.Add(1)
	}
	return length, from, err
}

// A peer connection that reaches this machine itself, with the usual interceptors above those given.
func connection(below ...interceptor.Factory) *webrtc.PeerConnection {
	engine := &webrtc.MediaEngine{}
	check(engine.RegisterDefaultCodecs())
	registry := &interceptor.Registry{}
	for _, factory := range below {
		registry.Add(factory)
	}
	check(webrtc.RegisterDefaultInterceptors(engine, registry))
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetICEUDPMux(webrtc.NewICEUDPMux(nil, countingSocket{must(net.ListenPacket("udp4", "127.0.0.1:0"))}))
	api := webrtc.NewAPI(
		webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(registry), webrtc.WithSettingEngine(settings),
	)
	peer := must(api.NewPeerConnection(webrtc.Configuration{}))
	peers.Add(1)
	return peer
}

// Keeps packets of pictures from the wire the first time: every k-th, or about so many percent, but none at either end of so many frames.
// Counts those that are sent again, and the frames that are not whole, or not there at all, without these.
type dropper struct {
	interceptor.NoOp
	every         uint16
	percent, most uint32
}

// The frame that is kept from the wire as a whole.
const goneFrame = 40

// Whether a packet of this frame is kept from the wire. The same ones in each run: the finaliser of MurmurHash3 is the seed.
func (d *dropper) drops(number uint16, frame uint32) bool {
	if d.every > 0 && number%d.every == 0 {
		return true
	}
	if d.percent == 0 || frame < 5 || frame+5 >= d.most {
		return false
	}
	hash := uint32(number)
	hash = (hash ^ hash>>16) * 0x85ebca6b
	hash = (hash ^ hash>>13) * 0xc2b2ae35
	return frame == goneFrame || (hash^hash>>16)%100 < d.percent
}

func (d *dropper) NewInterceptor(string) (interceptor.Interceptor, error) { return d, nil }

func (d *dropper) BindLocalStream(info *interceptor.StreamInfo, writer interceptor.RTPWriter) interceptor.RTPWriter {
	if !strings.HasPrefix(strings.ToLower(info.MimeType), "video/") {
		return writer
	}
	var lock sync.Mutex
	seen := map[uint16]bool{}
	first, packets, gone := uint32(0), 0, 0
	return interceptor.RTPWriterFunc(func(header *rtp.Header, payload []byte, attributes interceptor.Attributes) (int, error) {
		number := header.SequenceNumber
		if header.PayloadType != info.PayloadType && len(payload) >= 2 {
			// A retransmission in a stream of its own: the number is inside (RFC 4588 section 4).
			number = uint16(payload[0])<<8 | uint16(payload[1])
			retransmissions.Add(1)
		}
		lock.Lock()
		defer lock.Unlock()
		if seen[number] {
			repeated.Add(1)
			return writer.Write(header, payload, attributes)
		}
		if len(seen) == 0 {
			first = header.Timestamp
		}
		seen[number] = true
		packets++
		drops := d.drops(number, (header.Timestamp-first)/3600)
		if drops {
			withheld.Add(1)
			gone++
		}
		if header.Marker {
			switch {
			case gone == packets:
				framesGone.Add(1)
			case gone > 0:
				framesHit.Add(1)
			}
			packets, gone = 0, 0
		}
		if drops {
			return len(payload), nil
		}
		return writer.Write(header, payload, attributes)
	})
}

// Reads what receivers say of a stream.
func listen(sender *webrtc.RTPSender, wantsKeyframe *atomic.Bool) {
	for {
		packets, _, err := sender.ReadRTCP()
		if err != nil {
			return
		}
		for _, packet := range packets {
			switch packet := packet.(type) {
			case *rtcp.ReceiverReport:
				for _, block := range packet.Reports {
					reports.Add(1)
					reportedLost.Store(int64(block.TotalLost))
				}
			case *rtcp.TransportLayerNack:
				for _, pair := range packet.Nacks {
					nacks.Add(int64(len(pair.PacketList())))
				}
			case *rtcp.PictureLossIndication:
				keyframesAsked.Add(1)
				wantsKeyframe.Store(true)
			}
		}
	}
}

// A stream of pictures of another codec than H.264: its name, and its frames.
type clip struct {
	codec  string
	frames [][]byte
}

// Reads the frames of a file.
func read(codec, path string) *clip {
	content := must(os.ReadFile(path))
	read := &clip{codec: codec}
	if codec == "H265" {
		// An access unit delimiter of H.265, behind its start code.
		delimiter := []byte{0, 0, 0, 1, 0x46, 1}
		for _, unit := range bytes.Split(content, delimiter)[1:] {
			read.frames = append(read.frames, append(append([]byte{}, delimiter...), unit...))
		}
		return read
	}
	// A header of 32 bytes; in front of each frame its length and its time, in 12.
	for rest := content[32:]; len(rest) >= 12; {
		length := binary.LittleEndian.Uint32(rest)
		read.frames = append(read.frames, rest[12:12+length])
		rest = rest[12+length:]
	}
	return read
}

// What makes payloads of frames.
func (c *clip) payloader() rtp.Payloader {
	switch c.codec {
	case "VP8":
		return &codecs.VP8Payloader{EnablePictureID: true}
	case "VP9":
		return &codecs.VP9Payloader{}
	case "AV1":
		return &codecs.AV1Payloader{}
	default:
		return &codecs.H265Payloader{}
	}
}

// The tracks of a publisher, and what sends on them until it is told to stop, or has sent so many frames (0: no end). The last
// packet of pictures is none of every so many: nothing would tell that it is missing.
func publish(peer *webrtc.PeerConnection, every uint16, most int, content *clip) (stop func()) {
	capability := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeH264, ClockRate: 90000,
		SDPFmtpLine: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"}
	var payloader rtp.Payloader = &codecs.H264Payloader{}
	if content != nil {
		capability = webrtc.RTPCodecCapability{MimeType: "video/" + content.codec, ClockRate: 90000}
		payloader = content.payloader()
		most = len(content.frames)
	}
	video := must(webrtc.NewTrackLocalStaticRTP(capability, "video", "pion"))
	audio := must(webrtc.NewTrackLocalStaticRTP(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}, "audio", "pion"))
	wantsKeyframe := &atomic.Bool{}
	for _, track := range []webrtc.TrackLocal{video, audio} {
		go listen(must(peer.AddTrack(track)), wantsKeyframe)
	}
	pictures := rtp.NewPacketizer(1160, 0, 0, payloader, rtp.NewFixedSequencer(65001), 90000)
	sounds := rtp.NewPacketizer(1160, 0, 0, &codecs.OpusPayloader{}, rtp.NewRandomSequencer(), 48000)
	begin, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			connected.Add(1)
			once.Do(func() { close(begin) })
		}
	})
	last := uint16(0)
	write := func(track *webrtc.TrackLocalStaticRTP, packets []*rtp.Packet) {
		for _, packet := range packets {
			last = packet.SequenceNumber
			if track.WriteRTP(packet) == nil {
				sent.Add(1)
			}
		}
	}
	go func() {
		defer close(done)
		select {
		case <-begin:
		case <-end:
			return
		}
		ticker := time.NewTicker(time.Second / 50)
		defer ticker.Stop()
		for tick, ending := 0, false; most == 0 || tick < 2*most; tick++ {
			write(audio, sounds.Packetize(append([]byte{0xFC}, make([]byte, 60)...), 960))
			if tick%2 == 0 {
				frame := tick / 2
				key := wantsKeyframe.Swap(false) || frame%25 == 0
				if content != nil {
					write(video, pictures.Packetize(content.frames[frame], 3600))
				} else {
					write(video, pictures.Packetize(accessUnit(key), 3600))
				}
				frames.Add(1)
				if ending && (every == 0 || last%every != 0) {
					return
				}
			}
			select {
			case <-ticker.C:
			case <-end:
				ending = true
				<-ticker.C
			}
		}
	}()
	return func() {
		close(end)
		<-done
	}
}

// An access unit of several packets in Annex B. Its parameter sets are real, its slices only begin as slices do.
func accessUnit(key bool) []byte {
	unit := []byte{}
	slice := append([]byte{0x41, 0x9A}, bytes.Repeat([]byte{0xAB}, 3000)...)
	if key {
		keyframes.Add(1)
		unit = append(unit, 0, 0, 0, 1, 0x67, 0x42, 0xE0, 0x1F, 0xDA, 0x02, 0x80, 0xBF, 0xE5, 0xC0, 0x44)
		unit = append(unit, 0, 0, 0, 1, 0x68, 0xCE, 0x3C, 0x80)
		slice = append([]byte{0x65, 0x88}, bytes.Repeat([]byte{0xAB}, 9000)...)
	}
	return append(append(unit, 0, 0, 0, 1), slice...)
}

// Counts what comes on the tracks of a player.
func play(peer *webrtc.PeerConnection, into string) {
	peer.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		isVideo := track.Kind() == webrtc.RTPCodecTypeVideo
		codec := strings.TrimPrefix(track.Codec().MimeType, "video/")
		var writer media.Writer
		if isVideo && into != "" {
			if codec == "H265" {
				writer = must(h265writer.New(into))
			} else {
				writer = must(ivfwriter.New(into, ivfwriter.WithCodec(track.Codec().MimeType)))
			}
			defer writer.Close()
		}
		if isVideo {
			check(peer.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: uint32(track.SSRC())}}))
		}
		missing := map[uint16]bool{}
		next, begun := uint16(0), false
		for {
			packet, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			received.Add(1)
			switch distance := packet.SequenceNumber - next; {
			case !begun || distance < 0x8000:
				for ; begun && next != packet.SequenceNumber; next++ {
					missing[next] = true
					lost.Add(1)
				}
				next, begun = packet.SequenceNumber+1, true
			case missing[packet.SequenceNumber]:
				delete(missing, packet.SequenceNumber)
				lost.Add(-1)
				recovered.Add(1)
			}
			if isVideo && packet.Marker {
				frames.Add(1)
			}
			if isVideo && isKeyframe(codec, packet.Payload) {
				keyframes.Add(1)
			}
			if writer != nil {
				check(writer.WriteRTP(packet))
			}
		}
	})
}

// Whether a keyframe begins in this payload. Of H.264 and H.265 that is where its parameter sets come: alone, or first in an aggregation
// packet.
func isKeyframe(codec string, payload []byte) bool {
	switch codec {
	case "VP8":
		packet := codecs.VP8Packet{}
		frame, err := packet.Unmarshal(payload)
		return err == nil && packet.S == 1 && packet.PID == 0 && len(frame) > 0 && frame[0]&1 == 0
	case "VP9":
		packet := codecs.VP9Packet{}
		_, err := packet.Unmarshal(payload)
		return err == nil && packet.B && !packet.P
	case "AV1":
		return len(payload) > 0 && payload[0]&0x08 != 0
	case "H265":
		if len(payload) > 4 && payload[0]>>1&0x3F == 48 {
			payload = payload[4:]
		}
		return len(payload) > 0 && payload[0]>>1&0x3F == 32
	}
	if len(payload) > 3 && payload[0]&0x1F == 24 {
		payload = payload[3:]
	}
	return len(payload) > 0 && payload[0]&0x1F == 7
}

// Asks a server for a session; what is to be done at its end.
func session(peer *webrtc.PeerConnection, where string) (end func()) {
	gathered := webrtc.GatheringCompletePromise(peer)
	check(peer.SetLocalDescription(must(peer.CreateOffer(nil))))
	<-gathered
	offer := strings.NewReader(peer.LocalDescription().SDP)
	answer := must(http.Post(where, "application/sdp", offer))
	body := must(io.ReadAll(answer.Body))
	if answer.StatusCode != http.StatusCreated {
		check(fmt.Errorf("%s: %s", answer.Status, body))
	}
	check(peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: string(body)}))
	resource := must(must(url.Parse(where)).Parse(answer.Header.Get("Location")))
	return func() {
		request := must(http.NewRequest(http.MethodDelete, resource.String(), nil))
		must(http.DefaultClient.Do(request)).Body.Close()
	}
}

// Answers an offer: a peer that sends to who plays, and counts what comes of who publishes.
func answer(path, offer string, most, percent int, content *clip, into string) (string, func(), error) {
	peer := connection(&dropper{percent: uint32(percent), most: uint32(most)})
	stop := func() {}
	if strings.HasPrefix(path, "/whep") {
		stop = publish(peer, 0, most, content)
	} else {
		peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
			if state == webrtc.PeerConnectionStateConnected {
				connected.Add(1)
			}
		})
		play(peer, into)
	}
	description := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}
	if err := peer.SetRemoteDescription(description); err != nil {
		return "", nil, err
	}
	made, err := peer.CreateAnswer(nil)
	if err != nil {
		return "", nil, err
	}
	gathered := webrtc.GatheringCompletePromise(peer)
	if err := peer.SetLocalDescription(made); err != nil {
		return "", nil, err
	}
	<-gathered
	return peer.LocalDescription().SDP, func() {
		stop()
		// What is under way still comes.
		time.Sleep(200 * time.Millisecond)
		_ = peer.Close()
	}, nil
}

func serve(most, percent int, content *clip, into string) {
	var lock sync.Mutex
	ends := []func(){}
	handle := func(writer http.ResponseWriter, request *http.Request) {
		body := must(io.ReadAll(request.Body))
		switch request.Method {
		case http.MethodPost:
			made, end, err := answer(request.URL.Path, string(body), most, percent, content, into)
			if err != nil {
				http.Error(writer, err.Error(), http.StatusNotAcceptable)
				return
			}
			lock.Lock()
			ends = append(ends, end)
			writer.Header().Set("Location", fmt.Sprintf("/session/%d", len(ends)-1))
			lock.Unlock()
			writer.Header().Set("Content-Type", "application/sdp")
			writer.WriteHeader(http.StatusCreated)
			fmt.Fprint(writer, made)
		case http.MethodDelete:
			number := must(strconv.Atoi(strings.TrimPrefix(request.URL.Path, "/session/")))
			lock.Lock()
			end := ends[number]
			ends[number] = func() {}
			lock.Unlock()
			end()
		default:
			writer.WriteHeader(http.StatusMethodNotAllowed)
		}
	}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() { check(http.Serve(listener, http.HandlerFunc(handle))) }()
	untilTold()
	for _, end := range ends {
		end()
	}
}

func untilTold() { must(io.Copy(io.Discard, os.Stdin)) }

// Waits until something was counted.
func await(count *atomic.Int64) {
	for began := time.Now(); count.Load() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			check(fmt.Errorf("no media within 30 s"))
		}
	}
	fmt.Println("ready")
}

func main() {
	switch os.Args[1] {
	case "play":
		peer := connection()
		for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio} {
			must(peer.AddTransceiverFromKind(kind, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}))
		}
		play(peer, "")
		end := session(peer, os.Args[2])
		await(&received)
		untilTold()
		end()
		time.Sleep(500 * time.Millisecond)
		check(peer.Close())
	case "publish":
		every := uint16(must(strconv.Atoi(os.Args[3])))
		peer := connection(&dropper{every: every})
		stop := publish(peer, every, 0, nil)
		end := session(peer, os.Args[2])
		await(&sent)
		untilTold()
		stop()
		// What was lost may still be asked for.
		time.Sleep(500 * time.Millisecond)
		end()
		check(peer.Close())
	case "serve":
		var content *clip
		into, percent := "", 0
		switch {
		case len(os.Args) > 4 && os.Args[3] == "into":
			into = os.Args[4]
		case len(os.Args) > 4 && os.Args[3] != "H264":
			content = read(os.Args[3], os.Args[4])
		}
		if len(os.Args) > 5 {
			percent = must(strconv.Atoi(os.Args[5]))
		}
		serve(must(strconv.Atoi(os.Args[2])), percent, content, into)
	}
	printCounts()
}
