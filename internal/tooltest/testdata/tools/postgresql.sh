# needs: initdb postgres pg_ctl psql
# as: ordinary
# prints: answer 42
# prints: 100 rows
# PostgreSQL does not run as root. Debian keeps its programs off PATH.
for bin in /usr/lib/postgresql/*/bin; do PATH=$PATH:$bin; done
initdb -D data -A trust -U tool --no-sync >initdb.log 2>&1 || { cat initdb.log; exit 1; }
mkdir sock
pg_ctl -D data -w -l log -o "-c listen_addresses=127.0.0.1 -c port=54399 -k $PWD/sock" start >start.log || { cat start.log log; exit 1; }
psql -h "$PWD/sock" -p 54399 -U tool -d postgres -Atc "select 'answer ' || 6*7"
psql -h 127.0.0.1 -p 54399 -U tool -d postgres -Atq -c 'create table t as select generate_series(1,100) as x' -c "select count(*) || ' rows' from t"
pg_ctl -D data -m fast -w stop >/dev/null
