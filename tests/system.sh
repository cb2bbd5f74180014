#!/bin/sh
# Install the Debian packages that tests use, where that is allowed; write what is missing to the file named first.
# With `slow` also those that only the slow tests use.
missing="$1"
: > "$missing"

# present PACKAGE: is what the tests use of it there?
present() {
  case "$1" in
    chromium) command -v chromium ;;
    postgresql) command -v initdb || ls /usr/lib/postgresql/*/bin/initdb ;;
    postgresql-client) command -v psql ;;
    default-jre-headless) command -v java ;;
    nodejs) command -v node ;;
    npm) command -v npm ;;
    default-jdk-headless) command -v javac ;;
    libpostgresql-jdbc-java) ls /usr/share/java/postgresql.jar ;;
    odbc-postgresql) ls /usr/lib/*/odbc/psqlodbcw.so ;;
    r-base-core) command -v Rscript ;;
    r-cran-dbplyr) ls -d /usr/lib/R/site-library/dbplyr ;;
    r-cran-rpostgresql) ls -d /usr/lib/R/site-library/RPostgreSQL ;;
    libreoffice-base) command -v soffice ;;
    libreoffice-sdbc-postgresql) ls /usr/lib/libreoffice/program/libpostgresql-sdbc* ;;
    python3-uno) /usr/bin/python3 -c "import uno" ;;
  esac >/dev/null 2>&1
}

# said PACKAGE: which tests do not run without it
said() {
  case "$1" in
    chromium) echo "the browser tests" ;;
    postgresql) echo "the comparison with a real Postgres" ;;
    postgresql-client) echo "the test of psql" ;;
    default-jre-headless) echo "the tests of a real Spark" ;;
    nodejs | npm) echo "the test of node" ;;
    default-jdk-headless | libpostgresql-jdbc-java) echo "the tests of JDBC" ;;
    odbc-postgresql) echo "the tests of ODBC" ;;
    r-*) echo "the test of R" ;;
    libreoffice-* | python3-uno) echo "the test of LibreOffice" ;;
  esac
}

packages="chromium postgresql postgresql-client nodejs npm default-jre-headless"
if [ "$2" = slow ]; then
  packages="$packages default-jdk-headless libpostgresql-jdbc-java odbc-postgresql"
  packages="$packages r-base-core r-cran-dbplyr r-cran-rpostgresql"
  packages="$packages libreoffice-base libreoffice-sdbc-postgresql python3-uno"
fi
wanted=""
for package in $packages; do
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
