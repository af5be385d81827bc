#!/bin/sh
# One run whose load is made by these machines, each of which has weir and is reached by ssh without a question:
#
#   export WEIR_NATS_TOKEN="t$(openssl rand -hex 16)"
#   echo 'authorization: { token: $WEIR_NATS_TOKEN }' >nats.conf
#   nats-server -a 10.0.0.1 -c nats.conf &
#   NATS=nats://10.0.0.1:4222 ONLY=10.0.0.0/8 deploy/ssh.sh "one two three" run load.yaml
#
# The words after the machines are weir's, run here with `--agents 3 --nats $NATS`. Agents end with the run, and keep their
# directories in ~/weir-runs. The token of the NATS server (WEIR_NATS_TOKEN) goes over ssh, and stands on no command line; it
# begins with a letter, because NATS reads a value that begins with digits as a number.
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

case $NATS in
*@*)
    echo "deploy/ssh.sh: NATS has credentials, which every user of those machines could read: WEIR_NATS_TOKEN has the token" >&2
    exit 2
    ;;
esac

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
    ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -- \
        "$host" "exec sh -c '$agent'" <"$folder/$count" &
    # Held open for as long as this script lives, however it ends.
    { printf '%s\n' "${WEIR_NATS_TOKEN-}"; while kill -0 $$ 2>/dev/null; do sleep 1; done; } >"$folder/$count" &
    holders="$holders $!"
done

code=0
"$weir" "$@" --agents "$count" --nats "$NATS" || code=$?
exit "$code"
