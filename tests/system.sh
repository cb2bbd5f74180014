#!/bin/sh
# Install the Debian packages that tests use, where that is allowed; write what is missing to the file named first.
missing="$1"
: > "$missing"

# present PACKAGE: is what the tests use of it there?
present() {
  case "$1" in
    chromium) command -v chromium ;;
    postgresql) command -v initdb || ls /usr/lib/postgresql/*/bin/initdb ;;
    postgresql-client) command -v psql ;;
  esac >/dev/null 2>&1
}

# said PACKAGE: which tests do not run without it
said() {
  case "$1" in
    chromium) echo "the browser tests" ;;
    postgresql) echo "the comparison with a real Postgres" ;;
    postgresql-client) echo "the tests of psql" ;;
  esac
}

wanted=""
for package in chromium postgresql postgresql-client; do
  present "$package" || wanted="$wanted $package"
done
[ -z "$wanted" ] && exit 0
if command -v apt-get >/dev/null; then
  run=""
  [ "$(id -u)" = 0 ] || run="sudo -n"
  # shellcheck disable=SC2086 # one word each
  { $run apt-get -qq update && $run apt-get -qq install -y --no-install-recommends $wanted; } >/dev/null 2>&1
fi
for package in $wanted; do
  present "$package" || echo "Not run for want of a package: $(said "$package") (install Debian's $package)." >> "$missing"
done
[ ! -s "$missing" ] || [ "${CI:-}" != true ]
