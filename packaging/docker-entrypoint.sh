#!/bin/sh
# The first start of a container: gives the role postgres its password, without which the server listens on loopback only.
# THRONG_PASSWORD, or a file named by THRONG_PASSWORD_FILE, has it. Later starts serve at once.
set -eu

DATA=/var/lib/throng/data

if [ "${1:-}" = throng ] && [ "${2:-}" = serve ] && [ ! -e "$DATA/control" ]; then
    password=${THRONG_PASSWORD:-}
    if [ -n "${THRONG_PASSWORD_FILE:-}" ]; then
        password=$(cat "$THRONG_PASSWORD_FILE")
    fi
    if [ -z "$password" ]; then
        echo "throng: set THRONG_PASSWORD, or THRONG_PASSWORD_FILE, for the first start" >&2
        exit 1
    fi
    throng serve --data "$DATA" --listen 127.0.0.1:5433 &
    server=$!
    until pg_isready -q -h /tmp -p 5433 -U postgres; do
        kill -0 "$server"
        sleep 0.1
    done
    printf '%s\n' "alter role postgres password :'password'" |
        psql -q -X -v ON_ERROR_STOP=1 -v password="$password" -h /tmp -p 5433 -U postgres
    kill -TERM "$server"
    wait "$server"
fi

unset THRONG_PASSWORD
exec "$@"
