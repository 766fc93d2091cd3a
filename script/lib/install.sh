# shellcheck shell=bash
# What the scripts share about installing. Sourced; nothing here is installed without a word.

script_name=${0##*/}

say() { printf '%s: %s\n' "$script_name" "$*"; }
fail() {
  printf '%s: %s\n' "$script_name" "$*" >&2
  exit 1
}

# Servers are not in every user's PATH.
have() { PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif have sudo; then
    sudo "$@"
  else
    fail "this needs root and there is no sudo: $*"
  fi
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

# install_packages PACKAGE…: the machine's package lists are read again only when they are too old.
install_packages() {
  local log
  have apt-get || fail "install these packages and run it again: $*"
  say "installing $*"
  log=$(mktemp)
  if ! { apt_install "$@" || { as_root apt-get update -q && apt_install "$@"; }; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install $*"
  fi
  rm -f "$log"
}

# What the tests and the demo run on.
install_mariadb() {
  if ! { have mariadbd && have mariadb-install-db && have mariadb; }; then
    install_packages mariadb-server-core mariadb-client-core
  fi
}

# What makes private MariaDB servers a cluster: the provider's library alone. The package
# `mariadb-server`, with its service and its account, is not needed (tests/src/server/galera.rs says
# why), so nothing is started that would have to be stopped.
install_galera() {
  [ -f /usr/lib/galera/libgalera_smm.so ] || install_packages galera-4
}

# What policies are published to in the tests, and what signs them. The package starts a service where
# there is a service manager; the tests start registries of their own.
install_registry() {
  have docker-registry || install_packages docker-registry
  have minisign || install_packages minisign
}

# Where cargo's tools that are missing are built, for the commands that follow.
use_cargo_tools() {
  tools=${TOLLGATE_TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/tollgate/tools}
  export PATH="$tools/bin:$PATH"
}

# cargo_tool NAME VERSION: any version that is there is used; the one named is built otherwise, without
# optimisation: these tools wait for others most of the time, and that halves the time to build them.
cargo_tool() {
  if ! cargo "$1" --version >/dev/null 2>&1; then
    say "building cargo-$1 $2 into $tools, once; this takes some minutes"
    cargo install --quiet --locked --debug --root "$tools" "cargo-$1@$2"
  fi
}
