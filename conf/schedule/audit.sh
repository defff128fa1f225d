#!/usr/bin/env bash
# Loads new snapshots, audits what is not audited yet, and answers with the exit code of the audit:
# 0 all rules hold, 4 warnings, 2 errors, 3 cannot decide, 64 usage, 65 bad input, 70 internal.
# Meant for cron, systemd and the like: it needs no terminal, and may be killed and run again at any
# moment. Everything is set by variables:
#
#   SNAPSHOTS   what to load: a directory, a glob or files of any form (none: only audit)
#   STORE       the snapshot store
#   OUT         where the tables of the audit go
#   RULES       a TOML file of rules (none: all of them)
#   SINCE       how far back the verdict looks, such as 24h (none: everything)
#   VERDICT     a file for the JSON answer
#   PROMETHEUS  a file for the textfile collector
#   MASTER      of Spark (default local[*])
#   ZIP         understudy.zip for the executors (default dist/understudy.zip)
#   SPARK_SUBMIT, SUBMIT_ARGS   the launcher, and more arguments for it
set -u
home="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
: "${STORE:?is not set}" "${OUT:?is not set}"

submit() {
  # shellcheck disable=SC2086  # several arguments on purpose
  "${SPARK_SUBMIT:-spark-submit}" --master "${MASTER:-local[*]}" \
    --py-files "${ZIP:-$home/dist/understudy.zip}" \
    --properties-file "$home/conf/spark-defaults.conf" ${SUBMIT_ARGS:-} "$@"
}

loaded=0
if [ -n "${SNAPSHOTS:-}" ]; then
  submit "$home/jobs/load.py" "$SNAPSHOTS" --into "$STORE" --limit 5 || loaded=$?
fi

audited=0
submit "$home/jobs/audit.py" "$STORE" --out "$OUT" --limit 5 \
  ${RULES:+--rules "$RULES"} ${SINCE:+--since "$SINCE"} \
  ${VERDICT:+--verdict "$VERDICT"} ${PROMETHEUS:+--prometheus "$PROMETHEUS"} || audited=$?

# Bad input beats the verdict, and an internal error beats both.
if [ "$loaded" -ne 0 ] && [ "$audited" -ne 70 ]; then exit "$loaded"; fi
exit "$audited"
