//! The pages that play a stream in a browser, by WHEP, or with `?ws` by OvenMediaEngine's signalling, and publish one, by
//! WHIP. The stream is that of the page's own path. What became of it stands in `window.weir`.

/// The page that plays.
pub(super) const PLAY: &str = r#"<!doctype html>
<meta charset="utf-8">
<title>weir origin</title>
<style>body{background:#111;color:#ddd;font:14px sans-serif}video{width:100%;max-width:1280px}</style>
<video autoplay muted playsinline controls></video>
<p id="state">connecting</p>
<p><a href="?direction=whip" style="color:#8bf">publish here</a></p>
<script>
window.weir = {state: 'connecting'};
const say = state => {
  weir.state = state;
  document.querySelector('#state').textContent = state;
  console.log('weir: ' + state);
};
const peer = weir.peer = new RTCPeerConnection({bundlePolicy: 'max-bundle'});
const media = new MediaStream();
document.querySelector('video').srcObject = media;
peer.ontrack = event => media.addTrack(event.track);
peer.onconnectionstatechange = () => say(peer.connectionState);
setInterval(async () => {
  for (const report of (await peer.getStats()).values()) {
    if (report.type == 'inbound-rtp' && report.kind == 'video') {
      // Not every browser counts freezes.
      const {freezeCount: freezes = 0, totalFreezesDuration: frozen = 0} = report;
      say(`${peer.connectionState}, ${report.framesDecoded} frames decoded, ${report.packetsLost} packets lost, ` +
          `${freezes} freezes, ${frozen.toFixed(3)} s frozen`);
    }
  }
}, 1000);
const gathered = async () => {
  while (peer.iceGatheringState != 'complete') await new Promise(done => setTimeout(done, 20));
};
async function whep() {
  for (const kind of ['video', 'audio']) peer.addTransceiver(kind, {direction: 'recvonly'});
  await peer.setLocalDescription();
  await gathered();
  const response = await fetch(location.href, {
    method: 'POST', headers: {'Content-Type': 'application/sdp'}, body: peer.localDescription.sdp,
  });
  if (response.status != 201) throw new Error('HTTP ' + response.status + ' ' + await response.text());
  weir.resource = new URL(response.headers.get('Location'), location.href).href;
  await peer.setRemoteDescription({type: 'answer', sdp: await response.text()});
}
function socket() {
  const socket = weir.socket = new WebSocket(location.href.replace(/^http/, 'ws'));
  socket.onopen = () => socket.send(JSON.stringify({command: 'request_offer'}));
  socket.onclose = event => say('the server closed: ' + event.reason);
  socket.onmessage = async event => {
    const message = JSON.parse(event.data);
    if (message.error) throw say(message.code + ' ' + message.error);
    if (message.command != 'offer') return;
    await peer.setRemoteDescription(message.sdp);
    for (const candidate of message.candidates || []) await peer.addIceCandidate(candidate);
    await peer.setLocalDescription();
    await gathered();
    socket.send(JSON.stringify({command: 'answer', id: message.id, peer_id: 0, sdp: peer.localDescription}));
  };
}
(location.search.includes('ws') ? Promise.resolve().then(socket) : whep()).catch(error => say(String(error)));
</script>
"#;

/// The page that publishes camera and microphone; for N seconds with `?seconds=N`, otherwise until its button is pressed.
pub(super) const PUBLISH: &str = r#"<!doctype html>
<meta charset="utf-8">
<title>weir origin: publish</title>
<style>body{background:#111;color:#ddd;font:14px sans-serif}video{width:100%;max-width:1280px}</style>
<video autoplay muted playsinline></video>
<p><button id="end">end</button> <span id="state">asking for camera and microphone</span></p>
<script>
window.weir = {state: 'asking'};
const say = state => {
  weir.state = state;
  document.querySelector('#state').textContent = state;
  console.log('weir: ' + state);
};
const peer = weir.peer = new RTCPeerConnection({bundlePolicy: 'max-bundle'});
peer.onconnectionstatechange = () => say(peer.connectionState);
setInterval(async () => {
  if (weir.ending) return;
  const reports = [...(await peer.getStats()).values()];
  const pair = reports.find(report => report.type == 'candidate-pair' && report.availableOutgoingBitrate);
  const video = reports.find(report => report.type == 'outbound-rtp' && report.kind == 'video');
  if (pair && video) {
    say(`${peer.connectionState}, ${video.framesSent} frames sent; it may send ` +
        `${Math.round(pair.availableOutgoingBitrate)} bit/s`);
  }
}, 1000);
const gathered = async () => {
  while (peer.iceGatheringState != 'complete') await new Promise(done => setTimeout(done, 20));
};
async function end() {
  weir.ending = true;
  for (const sender of peer.getSenders()) await sender.replaceTrack(null);
  // What is being encoded still leaves.
  await new Promise(done => setTimeout(done, 500));
  let frames = 0, lost = 0;
  for (const report of (await peer.getStats()).values()) {
    // Of sound each packet is a frame; of pictures there are packets that only probe for bandwidth.
    if (report.type == 'outbound-rtp') frames += report.kind == 'video' ? report.framesSent : report.packetsSent;
    if (report.type == 'remote-inbound-rtp') lost += report.packetsLost;
  }
  if (weir.resource) await fetch(weir.resource, {method: 'DELETE'});
  peer.close();
  say(`ended, ${frames} frames sent, ${lost} packets lost`);
}
async function whip() {
  const devices = await navigator.mediaDevices.getUserMedia({video: {width: 1280, height: 720}, audio: true});
  document.querySelector('video').srcObject = devices;
  for (const track of devices.getTracks()) {
    const transceiver = peer.addTransceiver(track, {direction: 'sendonly', streams: [devices]});
    if (track.kind != 'video') continue;
    const all = RTCRtpSender.getCapabilities('video').codecs;
    const offered = weir.codecs = all.filter(codec => /h264|rtx/i.test(codec.mimeType));
    if (!offered.some(codec => /h264/i.test(codec.mimeType))) {
      throw new Error('this browser has no encoder of H.264, only ' + all.map(codec => codec.mimeType));
    }
    transceiver.setCodecPreferences(offered);
  }
  await peer.setLocalDescription();
  await gathered();
  const response = await fetch(location.href, {
    method: 'POST', headers: {'Content-Type': 'application/sdp'}, body: peer.localDescription.sdp,
  });
  if (response.status != 201) throw new Error('HTTP ' + response.status + ' ' + await response.text());
  weir.resource = new URL(response.headers.get('Location'), location.href).href;
  await peer.setRemoteDescription({type: 'answer', sdp: await response.text()});
  const seconds = new URLSearchParams(location.search).get('seconds');
  if (seconds) setTimeout(end, 1000 * seconds);
}
document.querySelector('#end').onclick = end;
whip().catch(error => say(String(error)));
</script>
"#;
