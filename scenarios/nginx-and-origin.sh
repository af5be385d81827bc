#!/bin/sh
# The table of scenarios/nginx-rtmp.yaml twice: nginx-rtmp with one worker, then weir's origin with one worker.
#
#   cargo build --release --locked -p weir && scenarios/nginx-and-origin.sh
#
# Starts both servers on loopback, ends them again, prints two Markdown reports. 7 min.
set -eu
cd "$(dirname "$0")/.."
weir=${WEIR:-${CARGO_TARGET_DIR:-target}/release/weir}
port=${PORT:-19350}
directory=$(mktemp -d)
nginx= origin=
trap 'kill $nginx $origin 2>/dev/null || true; rm -rf "$directory"' EXIT INT TERM

cat >"$directory/nginx.conf" <<END
load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;
daemon off; master_process off; worker_processes 1; worker_rlimit_nofile 8192;
pid $directory/nginx.pid; error_log $directory/nginx.log;
events { worker_connections 4096; }
rtmp { server { listen 127.0.0.1:$port; application live { live on; } } }
END
/usr/sbin/nginx -c "$directory/nginx.conf" -e "$directory/nginx.log" &
nginx=$!
"$weir" origin --rtmp "127.0.0.1:$((port + 1))" >"$directory/origin.log" &
origin=$!
sleep 1

# A row that misses a threshold is a result, too.
measure() {
	"$weir" run scenarios/nginx-rtmp.yaml --target "127.0.0.1:$1" --watch "pid=$2" --format markdown --no-tui \
		-o "$directory/$1" || echo "exit code $?"
}
measure "$port" "$nginx"
measure "$((port + 1))" "$origin"
