#!/bin/sh
# One run whose load is made by these machines, each of which has weir and is reached by ssh without a question:
#
#   nats-server -a 10.0.0.1 --auth "$WEIR_NATS_TOKEN" &
#   NATS=nats://10.0.0.1:4222 ONLY=10.0.0.0/8 deploy/ssh.sh "one two three" run load.yaml
#
# The words after the machines are weir's, run here with `--agents 3 --nats $NATS`. Agents end with the run, and keep their
# directories in ~/weir-runs. The token of the NATS server (WEIR_NATS_TOKEN) goes over ssh, and stands on no command line.
set -eu

if [ $# -lt 2 ]; then
    echo 'deploy/ssh.sh "HOST HOST …" run FILE: which machines, and what they are to run' >&2
    exit 2
fi
: "${NATS:?say where the NATS server is that all of them reach: NATS=nats://10.0.0.1:4222}"
: "${ONLY:?say which networks they may load: ONLY=10.0.0.0/8}"
hosts=$1
shift
weir=${WEIR:-weir}

# What is put between quotes for the other machine's shell has none of its own.
for word in "$NATS" "$ONLY" "$weir"; do
    case $word in
    *[!A-Za-z0-9.,:/@_%+-]*)
        echo "deploy/ssh.sh: '$word' has a character that is none of an address or a path" >&2
        exit 2
        ;;
    esac
done

folder=$(mktemp -d)
holders=
end() {
    trap - EXIT INT TERM HUP
    # With its end of the line each agent is told to end; ssh ends behind it.
    # shellcheck disable=SC2086
    [ -z "$holders" ] || kill $holders 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 105' INT TERM HUP

count=0
for host in $hosts; do
    count=$((count + 1))
    mkfifo "$folder/$count"
    # Its end is the agent's: a connection that is gone leaves nothing behind.
    agent="IFS= read -r WEIR_NATS_TOKEN; export WEIR_NATS_TOKEN
        $weir agent --join $NATS --name agent-$count --only $ONLY & agent=\$!
        IFS= read -r _; kill -TERM \$agent; wait \$agent"
    ssh -o BatchMode=yes "$host" "$agent" <"$folder/$count" &
    { printf '%s\n' "${WEIR_NATS_TOKEN-}"; exec sleep 604800; } >"$folder/$count" &
    holders="$holders $!"
done

code=0
"$weir" "$@" --agents "$count" --nats "$NATS" || code=$?
exit "$code"
