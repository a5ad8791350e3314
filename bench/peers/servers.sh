#!/usr/bin/env bash
# Gets the servers of the comparison that this machine lacks, beanstalkd and redis, as far as apt has them. PostgreSQL
# comes from the extra `peers`. What cannot be had is left out of the comparison, which says so: never an error here.
#
# Nothing is installed that would run as a service from then on: the package beanstalkd is only unpacked, and
# redis-server is a second name of a program in redis-tools, which has no service.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$PWD/build/peers/usr/bin
export PATH=$PATH:/usr/sbin:$bin DEBIAN_FRONTEND=noninteractive

if ! { command -v beanstalkd && command -v redis-server; } >/dev/null && command -v apt-get >/dev/null; then
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    # The lists may be absent, as in a fresh container.
    apt-cache show redis-tools >/dev/null 2>&1 || "${as_root[@]}" apt-get -qq update >/dev/null || true
    mkdir -p "$bin"
    if ! command -v beanstalkd >/dev/null; then
        package=$(mktemp -d)
        trap 'rm -rf "$package"' EXIT
        (cd "$package" && apt-get -qq -o APT::Sandbox::User=root download beanstalkd >/dev/null) &&
            dpkg-deb --extract "$package"/beanstalkd_*.deb build/peers || true
    fi
    if ! command -v redis-server >/dev/null; then
        "${as_root[@]}" apt-get -qq -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends redis-tools >/dev/null &&
            ln -sf "$(command -v redis-check-rdb)" "$bin/redis-server" || true
    fi
fi

for program in beanstalkd redis-server; do
    command -v "$program" >/dev/null || echo "telha-queue: no $program to be had here; measuring without it" >&2
done
